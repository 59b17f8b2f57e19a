package datetime

import (
	"strconv"
	"strings"
	"time"
)

// Zone returns the location that TZ names. read reads a file by path in whatever tree the caller sees; zone files are
// looked for there, under /usr/share/zoneinfo. What is not found is UTC, as in glibc.
func Zone(tz string, read func(path string) ([]byte, error)) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	switch tz {
	case "", "UTC", "UTC0", "Etc/UTC", "Z":
		return time.UTC
	case "GMT", "GMT0":
		return time.FixedZone("GMT", 0)
	}
	if loc := fixedZone(tz); loc != nil {
		return loc
	}
	path := "/usr/share/zoneinfo/" + tz
	if strings.HasPrefix(tz, "/") {
		path = tz
	}
	if data, err := read(path); err == nil {
		if loc, err := time.LoadLocationFromTZData(tz, data); err == nil {
			return loc
		}
	}
	name, _, _ := strings.Cut(tz, "/")
	return time.FixedZone(name, 0)
}

// fixedZone reads NAME[+-]hh[:mm[:ss]], where hours are west of Greenwich. A second name, of summer time, is not read.
func fixedZone(tz string) *time.Location {
	name, rest := tz, ""
	if strings.HasPrefix(tz, "<") {
		var ok bool
		if name, rest, ok = strings.Cut(tz[1:], ">"); !ok {
			return nil
		}
	} else {
		i := strings.IndexAny(tz, "+-0123456789")
		if i < 3 {
			return nil
		}
		name, rest = tz[:i], tz[i:]
	}
	seconds, ok := parseOffset(rest)
	if !ok || strings.Contains(name, "/") {
		return nil
	}
	return time.FixedZone(name, -seconds)
}

// parseOffset reads [+-]hh[:mm[:ss]].
func parseOffset(text string) (seconds int, ok bool) {
	sign := 1
	switch {
	case strings.HasPrefix(text, "-"):
		sign, text = -1, text[1:]
	case strings.HasPrefix(text, "+"):
		text = text[1:]
	}
	unit := 3600
	for _, part := range strings.Split(text, ":") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || unit == 0 {
			return 0, false
		}
		seconds += n * unit
		unit /= 60
	}
	return sign * seconds, true
}
