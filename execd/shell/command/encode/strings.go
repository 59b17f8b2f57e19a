package encode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var stringsOptions = getopt.New("adfn:t:owe:0123456789", "all=a", "bytes:=n", "radix:=t", "print-file-name=f", "data=d",
	"include-all-whitespace=w", "encoding:=e")

// stringsBody prints the runs of printable characters in files.
func stringsBody(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(stringsOptions, 1)
	if err != nil {
		return err
	}
	least, radix, name, digits := 4, "", false, ""
	for _, o := range options {
		switch o.Name {
		case "n":
			if least, err = strconv.Atoi(o.Value); err != nil || least < 1 {
				return c.Die(1, "invalid minimum string length %s", o.Value)
			}
		case "t":
			radix = o.Value
		case "o":
			radix = "o"
		case "f":
			name = true
		case "a", "d", "w", "e":
		default:
			digits += o.Name
		}
	}
	if n, err := strconv.Atoi(digits); err == nil && n > 0 {
		least = n
	}
	c.Opening = "'%s'"
	return c.Each(ctx, names, func(file string, in *tool.Input) error {
		prefix := ""
		if name {
			prefix = file + ": "
		}
		return printRuns(c, bufio.NewReaderSize(in, 64<<10), least, radix, prefix)
	})
}

func printRuns(c *tool.Call, in *bufio.Reader, least int, radix, prefix string) error {
	var held []byte // the beginning of a run that may be too short
	length := 0
	for at := int64(0); ; at++ {
		b, err := in.ReadByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err == nil && (b >= ' ' && b <= '~' || b == '\t') {
			if length++; length < least {
				held = append(held, b)
				continue
			}
			if length == least {
				held = append(held, b)
				_, _ = c.Out.WriteString(prefix + runOffset(radix, at-int64(least)+1))
				_, _ = c.Out.Write(held)
			} else {
				_ = c.Out.WriteByte(b)
			}
			continue
		}
		if length >= least {
			if err := c.Out.WriteByte('\n'); err != nil {
				return err
			}
		}
		held, length = held[:0], 0
		if err != nil {
			return nil
		}
	}
}

func runOffset(radix string, at int64) string {
	switch radix {
	case "d":
		return fmt.Sprintf("%7d ", at)
	case "o":
		return fmt.Sprintf("%7o ", at)
	case "x":
		return fmt.Sprintf("%7x ", at)
	}
	return ""
}
