package basic

import (
	"context"
	"strings"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var dateOptions = getopt.New("d:f:I::r:Rs:u", "date:=d", "file:=f", "iso-8601::=I", "reference:=r", "rfc-email=R",
	"rfc-2822=R", "rfc-3339:", "set:=s", "universal=u", "utc=u", "debug")

const defaultDate = "%a %b %e %H:%M:%S %Z %Y"

func date(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(dateOptions, 1)
	if err != nil {
		return err
	}
	loc := c.Zone(ctx)
	layout, from, file, reference := defaultDate, "", "", ""
	hasDate := false
	for _, o := range options {
		switch o.Name {
		case "d":
			from, hasDate = o.Value, true
		case "f":
			file = o.Value
		case "r":
			reference = o.Value
		case "u":
			loc = time.UTC
		case "R":
			layout = "%a, %d %b %Y %H:%M:%S %z"
		case "I":
			if layout = isoLayout(o.Value, "T"); layout == "" {
				return c.Usage(1, "invalid argument '%s' for '--iso-8601'", o.Value)
			}
		case "rfc-3339":
			if layout = isoLayout(o.Value, " "); layout == "" {
				return c.Usage(1, "invalid argument '%s' for '--rfc-3339'", o.Value)
			}
		case "s":
			return c.Die(1, "cannot set date: Operation not permitted")
		}
	}
	for _, o := range operands {
		f, ok := strings.CutPrefix(o, "+")
		if !ok {
			return c.Die(1, "invalid date '%s'", o)
		}
		layout = f
	}
	now := c.Now().In(loc)
	switch {
	case reference != "":
		a, err := c.FS.Stat(ctx, reference)
		if err != nil {
			return c.Die(1, "%s: %s", reference, command.Reason(err))
		}
		now = a.Mtime.Go().In(loc)
	case file != "":
		return dates(ctx, c, file, now, layout)
	case hasDate:
		return printDate(c, from, now, layout)
	}
	_, err = c.Out.WriteString(datetime.Format(now, layout) + "\n")
	return err
}

func isoLayout(detail, separator string) string {
	zone := "%:z"
	switch detail {
	case "", "date":
		return "%Y-%m-%d"
	case "hours", "hour":
		return "%Y-%m-%d" + separator + "%H" + zone
	case "minutes", "minute":
		return "%Y-%m-%d" + separator + "%H:%M" + zone
	case "seconds", "second":
		return "%Y-%m-%d" + separator + "%H:%M:%S" + zone
	case "ns":
		if separator == " " {
			return "%Y-%m-%d %H:%M:%S.%N" + zone
		}
		return "%Y-%m-%dT%H:%M:%S,%N" + zone
	}
	return ""
}

func printDate(c *tool.Call, text string, now time.Time, layout string) error {
	if strings.TrimSpace(text) == "" {
		text = "00:00"
	}
	t, err := datetime.Parse(text, now)
	if err != nil {
		c.Fault("%s", err)
		return nil
	}
	_, err = c.Out.WriteString(datetime.Format(t, layout) + "\n")
	return err
}

func dates(ctx context.Context, c *tool.Call, file string, now time.Time, layout string) error {
	return c.Each(ctx, []string{file}, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := printDate(c, string(line), now, layout); err != nil {
				return err
			}
		}
		return lines.Err()
	})
}
