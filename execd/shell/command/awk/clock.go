package awk

import (
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command/datetime"
)

func systime(in *interp, _ []expr) (value, error) { return num(float64(in.Now().Unix())), nil }

func strftime(in *interp, args []expr) (value, error) {
	layout, when, zone := "%a %b %e %H:%M:%S %Z %Y", in.Now(), in.Zone(in.ctx)
	if len(args) > 0 {
		s, err := in.argText(args[0])
		if err != nil {
			return value{}, err
		}
		layout = s
	}
	if len(args) > 1 {
		n, err := in.argNum(args[1])
		if err != nil {
			return value{}, err
		}
		when = time.Unix(int64(n), 0)
	}
	if len(args) > 2 {
		utc, err := in.truth(args[2])
		if err != nil {
			return value{}, err
		}
		if utc {
			zone = time.UTC
		}
	}
	return str(datetime.Format(when.In(zone), layout)), nil
}

// mktime reads "YYYY MM DD HH MM SS".
func mktime(in *interp, args []expr) (value, error) {
	s, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	var n [6]int
	fields := strings.Fields(s)
	if len(fields) < 6 {
		return num(-1), nil
	}
	for i := range n {
		if n[i], err = strconv.Atoi(fields[i]); err != nil {
			return num(-1), nil
		}
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, in.Zone(in.ctx))
	return num(float64(t.Unix())), nil
}
