package text

import (
	"context"
	"math"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var foldOptions = getopt.New("bsw:", "bytes=b", "spaces=s", "width:=w")

// folder is what one fold does.
type folder struct {
	*tool.Call
	bytes, spaces bool
	width         int64
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
			if f.width, err = c.Number("invalid number of columns", o.Value, tool.Bounds{Low: 1, High: math.MaxInt64}); err != nil {
				return err
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
	start, column, blank := 0, int64(0), -1
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
func (f *folder) advance(rest []byte, column int64) (size int, after int64) {
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
