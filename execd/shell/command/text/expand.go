package text

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var expandOptions = getopt.New("it:0123456789", "initial=i", "tabs:=t")

// tabs are the tab stops: a list and what goes on after it, or every so many columns.
type tabs struct {
	stops  []int64
	every  int64 // a stop at every multiple of it, from "/N" or a single N
	beyond int64 // or so far from the last of stops, from "+N"
}

// add reads a list of stops as GNU's expand does; what is wrong with it is said.
func (t *tabs) add(c *tool.Call, list string) error {
	kind := byte(0)
	for at := 0; at < len(list); {
		switch b := list[at]; {
		case b == ',' || b == ' ' || b == '\t':
			at++
		case b == '/' || b == '+':
			kind = b
			at++
		case isDigit(b):
			end := at
			for end < len(list) && isDigit(list[end]) {
				end++
			}
			n, err := strconv.ParseInt(list[at:end], 10, 64)
			if err != nil {
				return c.Die(1, "tab stop is too large '%s'", list[at:end])
			}
			if end < len(list) && (list[end] == '/' || list[end] == '+') {
				return c.Die(1, "'%c' specifier not at start of number: '%s'", list[end], list[end:])
			}
			if err := t.stop(c, kind, n); err != nil {
				return err
			}
			at = end
		default:
			return c.Die(1, "tab size contains invalid character(s): '%s'", list[at:])
		}
	}
	return nil
}

// stop adds one number, which a "/" or "+" may stand before.
func (t *tabs) stop(c *tool.Call, kind byte, n int64) error {
	to := &t.every
	switch kind {
	case 0:
		t.stops = append(t.stops, n)
		return nil
	case '+':
		to = &t.beyond
	}
	if *to != 0 {
		return c.Die(1, "'%c' specifier only allowed with the last value", kind)
	}
	*to = n
	return nil
}

// finish checks the stops that all lists gave together.
func (t *tabs) finish(c *tool.Call) error {
	last := int64(0)
	for _, stop := range t.stops {
		switch {
		case stop == 0:
			return c.Die(1, "tab size cannot be 0")
		case stop <= last:
			return c.Die(1, "tab sizes must be ascending")
		}
		last = stop
	}
	switch {
	case t.every != 0 && t.beyond != 0:
		return c.Die(1, "'/' specifier is mutually exclusive with '+'")
	case len(t.stops) == 0 && t.every == 0:
		t.every, t.beyond = max(t.beyond, 0), 0
		if t.every == 0 {
			t.every = 8
		}
	case len(t.stops) == 1 && t.every == 0 && t.beyond == 0:
		*t = tabs{every: t.stops[0]}
	}
	return nil
}

// next returns the stop after a column.
func (t tabs) next(column int64) int64 {
	for _, stop := range t.stops {
		if stop > column {
			return stop
		}
	}
	if t.every > 0 {
		return column + t.every - column%t.every
	}
	if t.beyond > 0 {
		return column + t.beyond - (column-t.stops[len(t.stops)-1])%t.beyond
	}
	return column + 1
}

func tabOptions(c *tool.Call, p *getopt.Parser) (t tabs, all, initial bool, files []string, err error) {
	options, files, err := c.Options(p, 1)
	if err != nil {
		return t, false, false, nil, err
	}
	first := false
	digits := ""
	for _, o := range options {
		switch o.Name {
		case "i":
			initial = true
		case "first-only":
			first = true
		case "a":
			all = true
		case "t":
			all = true
			if err := t.add(c, o.Value); err != nil {
				return t, false, false, nil, err
			}
		default:
			digits += o.Name
		}
	}
	if err = t.add(c, digits); err == nil {
		err = t.finish(c)
	}
	return t, all && !first, initial, files, err
}

func expand(ctx context.Context, c *tool.Call) error {
	t, _, initial, files, err := tabOptions(c, expandOptions)
	if err != nil {
		return err
	}
	return eachLine(ctx, c, files, func(line []byte) error {
		column, leading := int64(0), true
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
			if err := pad(ctx, c, ' ', stop-column); err != nil {
				return err
			}
			column = stop
		}
		return nil
	})
}

// pad writes a character n times, which may be more than memory holds.
func pad(ctx context.Context, c *tool.Call, b byte, n int64) error {
	block := bytes.Repeat([]byte{b}, int(max(0, min(n, 4<<10))))
	for ; n > 0; n -= int64(len(block)) {
		if err := c.Step(ctx, 1); err != nil {
			return err
		}
		if _, err := c.Out.Write(block[:min(n, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
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
	column, pending, leading := int64(0), 0, true
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
