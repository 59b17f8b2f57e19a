package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var hexdumpOptions = getopt.New("bcCdn:os:vx", "canonical=C", "length:=n", "skip:=s", "no-squeezing=v", "one-byte-octal=b",
	"one-byte-char=c", "two-bytes-decimal=d", "two-bytes-octal=o", "two-bytes-hex=x")

func hexdump(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(hexdumpOptions, 1)
	if err != nil {
		return err
	}
	style, skip, limit, all := byte(0), int64(0), int64(-1), false
	if c.Name == "hd" {
		style = 'C'
	}
	for _, o := range options {
		switch o.Name {
		case "n", "s":
			n, err := tool.Count(o.Value, 0, tool.Sizes)
			if err != nil {
				return c.Die(1, "failed to parse length: '%s': Invalid argument", o.Value)
			}
			if o.Name == "n" {
				limit = n
			} else {
				skip = n
			}
		case "v":
			all = true
		default:
			style = o.Name[0]
		}
	}
	in := c.Concat(ctx, names)
	if _, err := io.CopyN(io.Discard, in, skip); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if limit >= 0 {
		in = io.LimitReader(in, limit)
	}
	return hexdumpRows(c, in, skip, style, all)
}

func hexdumpRows(c *tool.Call, in io.Reader, at int64, style byte, all bool) error {
	var last []byte
	starred, some := false, false
	buf := make([]byte, 16)
	width := 7
	if style == 'C' {
		width = 8
	}
	for {
		n, err := io.ReadFull(in, buf)
		if n == len(buf) && !all && bytes.Equal(buf, last) {
			if !starred {
				_, _ = c.Out.WriteString("*\n")
			}
			starred = true
		} else if n > 0 {
			starred, some = false, true
			last = append(last[:0], buf[:n]...)
			if _, err := c.Out.WriteString(fmt.Sprintf("%0*x", width, at) + hexdumpLine(style, buf[:n]) + "\n"); err != nil {
				return err
			}
		}
		at += int64(n)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
			if some {
				fmt.Fprintf(c.Out, "%0*x\n", width, at)
			}
			return nil
		}
	}
}

func hexdumpLine(style byte, b []byte) string {
	var line strings.Builder
	switch style {
	case 'C':
		for i := range 16 {
			if i%8 == 0 {
				line.WriteByte(' ')
			}
			if i < len(b) {
				fmt.Fprintf(&line, " %02x", b[i])
			} else {
				line.WriteString("   ")
			}
		}
		return line.String() + "  |" + printable(b) + "|"
	case 'b':
		for _, c := range b {
			fmt.Fprintf(&line, " %03o", c)
		}
		return line.String() + strings.Repeat("    ", 16-len(b))
	case 'c':
		o := &octal{}
		for _, c := range b {
			fmt.Fprintf(&line, " %3s", o.item(odType{'c', 1, false}, []byte{c}))
		}
		return line.String() + strings.Repeat("    ", 16-len(b))
	}
	format, blank := " %04x", "     "
	switch style {
	case 'd':
		format, blank = "   %05d", "        "
	case 'o':
		format, blank = "  %06o", "        "
	case 'x':
		format, blank = "    %04x", "        "
	}
	for i := 0; i < 16; i += 2 {
		switch {
		case i+1 < len(b):
			fmt.Fprintf(&line, format, int(b[i])|int(b[i+1])<<8)
		case i < len(b):
			fmt.Fprintf(&line, format, b[i])
		default:
			line.WriteString(blank)
		}
	}
	return line.String()
}
