package text

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var foldOptions = getopt.New("bsw:", "bytes=b", "spaces=s", "width:=w")

// folder is what one fold does.
type folder struct {
	*tool.Call
	bytes, spaces bool
	width         int
}

func fold(ctx context.Context, c *tool.Call) error {
	if len(c.Args) > 1 && len(c.Args[1]) > 1 && c.Args[1][0] == '-' && isDigit(c.Args[1][1]) {
		c.Args = append([]string{c.Args[0], "-w", c.Args[1][1:]}, c.Args[2:]...)
	}
	options, files, err := c.Options(foldOptions, 1)
	if err != nil {
		return err
	}
	f := &folder{Call: c, width: 80}
	for _, o := range options {
		switch o.Name {
		case "b":
			f.bytes = true
		case "s":
			f.spaces = true
		case "w":
			if f.width, err = strconv.Atoi(o.Value); err != nil || f.width < 1 {
				return c.Die(1, "invalid number of columns: '%s'%s", o.Value, outOfRange(err))
			}
		}
	}
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := f.line(line); err != nil {
				return err
			}
			if lines.Whole() {
				if err := c.Out.WriteByte('\n'); err != nil {
					return err
				}
			}
		}
		return lines.Err()
	})
}

// line writes a line broken where it would pass the width.
func (f *folder) line(line []byte) error {
	start, column, blank := 0, 0, -1
	for at := 0; at < len(line); {
		size, after := f.advance(line[at:], column)
		if after > f.width && at > start {
			end := at
			if f.spaces && blank > start {
				end = blank
			}
			_, _ = f.Out.Write(line[start:end])
			if err := f.Out.WriteByte('\n'); err != nil {
				return err
			}
			start, column, at = end, 0, end
			continue
		}
		if line[at] == ' ' || line[at] == '\t' {
			blank = at + size
		}
		at, column = at+size, after
	}
	_, err := f.Out.Write(line[start:])
	return err
}

// advance returns the size of the next character and the column after it.
func (f *folder) advance(rest []byte, column int) (size, after int) {
	if f.bytes {
		return 1, column + 1
	}
	switch rest[0] {
	case '\t':
		return 1, column + 8 - column%8
	case '\b':
		return 1, max(column-1, 0)
	case '\r':
		return 1, 0
	}
	return 1, column + 1
}

// outOfRange is what GNU adds about a number that is one, but too small.
func outOfRange(err error) string {
	if err == nil {
		return ": Numerical result out of range"
	}
	return ""
}

var expandOptions = getopt.New("it:0123456789", "initial=i", "tabs:=t")

// tabs are the tab stops: a list, or every so many columns.
type tabs struct {
	stops []int
	every int
}

func parseTabs(list string) (tabs, bool) {
	t := tabs{}
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(strings.TrimLeft(item, "/+"))
		if err != nil || n < 1 {
			return t, false
		}
		if item[0] == '/' || item[0] == '+' {
			t.every = n
		} else {
			t.stops = append(t.stops, n)
		}
	}
	if len(t.stops) == 1 && t.every == 0 {
		t = tabs{every: t.stops[0]}
	}
	return t, true
}

// next returns the stop after a column.
func (t tabs) next(column int) int {
	for _, stop := range t.stops {
		if stop > column {
			return stop
		}
	}
	if t.every > 0 {
		return column + t.every - column%t.every
	}
	return column + 1
}

func tabOptions(c *tool.Call, p *getopt.Parser) (t tabs, all, initial bool, files []string, err error) {
	options, files, err := c.Options(p, 1)
	if err != nil {
		return t, false, false, nil, err
	}
	list := ""
	for _, o := range options {
		switch o.Name {
		case "i", "first-only":
			initial = true
		case "a":
			all = true
		case "t":
			list, all = list+","+o.Value, true
		default:
			list += o.Name
		}
	}
	if list == "" {
		list = "8"
	}
	t, ok := parseTabs(list)
	if !ok {
		err = c.Die(1, "tab size contains invalid character(s): '%s'", strings.TrimPrefix(list, ","))
	}
	return t, all && !initial, initial, files, err
}

func expand(ctx context.Context, c *tool.Call) error {
	t, _, initial, files, err := tabOptions(c, expandOptions)
	if err != nil {
		return err
	}
	return eachLine(ctx, c, files, func(line []byte) error {
		column, leading := 0, true
		for i, b := range line {
			leading = leading && (b == ' ' || b == '\t')
			if b != '\t' || initial && !leading {
				if utf8.RuneStart(b) {
					column++
				}
				if err := c.Out.WriteByte(line[i]); err != nil {
					return err
				}
				continue
			}
			stop := t.next(column)
			_, _ = c.Out.WriteString(strings.Repeat(" ", stop-column))
			column = stop
		}
		return nil
	})
}

// eachLine calls f with each line of the files, and writes the newlines.
func eachLine(ctx context.Context, c *tool.Call, files []string, f func(line []byte) error) error {
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := f(line); err != nil {
				return err
			}
			if lines.Whole() {
				if err := c.Out.WriteByte('\n'); err != nil {
					return err
				}
			}
		}
		return lines.Err()
	})
}

var unexpandOptions = getopt.New("at:0123456789", "all=a", "first-only", "tabs:=t")

func unexpand(ctx context.Context, c *tool.Call) error {
	t, all, _, files, err := tabOptions(c, unexpandOptions)
	if err != nil {
		return err
	}
	return eachLine(ctx, c, files, func(line []byte) error {
		_, err := c.Out.Write(unexpandLine(line, t, all))
		return err
	})
}

// unexpandLine puts a tab for every run of blanks that reaches a tab stop, but for a single space.
func unexpandLine(line []byte, t tabs, all bool) []byte {
	var out []byte
	column, pending, leading := 0, 0, true
	flush := func() {
		out = append(out, strings.Repeat(" ", pending)...)
		pending = 0
	}
	for i, b := range line {
		if b != ' ' && b != '\t' || !leading && !all {
			flush()
			leading = false
			out = append(out, b)
			if utf8.RuneStart(b) {
				column++
			}
			continue
		}
		stop := t.next(column)
		if b == '\t' {
			out, pending, column = append(out, '\t'), 0, stop
			continue
		}
		pending++
		if column++; column == stop && (pending > 1 || i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t')) {
			out, pending = append(out, '\t'), 0
		}
	}
	flush()
	return out
}
