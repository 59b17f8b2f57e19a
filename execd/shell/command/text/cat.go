package text

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var catOptions = getopt.New("AbeEnstTuv", "show-all=A", "number-nonblank=b", "show-ends=E", "number=n",
	"squeeze-blank=s", "show-tabs=T", "show-nonprinting=v")

// catter is what one cat shows.
type catter struct {
	*tool.Call
	number, nonblank, squeeze, ends, tabs, visible bool

	line  int  // numbers given so far
	blank bool // the line before was blank
	start bool // at the start of a line
}

func cat(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(catOptions, 1)
	if err != nil {
		return err
	}
	k := &catter{Call: c, start: true}
	for _, o := range options {
		k.set(o.Name)
	}
	if !(k.number || k.nonblank || k.squeeze || k.ends || k.tabs || k.visible) {
		return c.Each(ctx, files, func(_ string, in *tool.Input) error { return copyThrough(c, in) })
	}
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := k.show(line, lines.Whole()); err != nil {
				return err
			}
		}
		return lines.Err()
	})
}

// copyThrough writes every block as it comes: who reads the other end waits for no buffer.
func copyThrough(c *tool.Call, in io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, err := c.Stdout.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func (k *catter) set(name string) {
	switch name {
	case "A":
		k.visible, k.ends, k.tabs = true, true, true
	case "b":
		k.nonblank = true
	case "e":
		k.visible, k.ends = true, true
	case "E":
		k.ends = true
	case "n":
		k.number = true
	case "s":
		k.squeeze = true
	case "t":
		k.visible, k.tabs = true, true
	case "T":
		k.tabs = true
	case "v":
		k.visible = true
	}
}

func (k *catter) show(line []byte, whole bool) error {
	blank := len(line) == 0 && k.start
	if k.squeeze && blank && k.blank {
		return nil
	}
	k.blank = blank
	if k.start && (k.nonblank && !blank || k.number && !k.nonblank) {
		k.line++
		fmt.Fprintf(k.Out, "%6d\t", k.line)
	}
	k.start = whole
	if k.visible || k.tabs {
		line = []byte(visible(line, k.visible, k.tabs))
	}
	_, err := k.Out.Write(line)
	if whole {
		if k.ends {
			_ = k.Out.WriteByte('$')
		}
		err = k.Out.WriteByte('\n')
	}
	return err
}

// visible writes control characters as ^X and bytes past ASCII as M-x.
func visible(line []byte, all, tabs bool) string {
	var b strings.Builder
	for _, c := range line {
		if c == '\t' {
			if tabs {
				b.WriteString("^I")
			} else {
				b.WriteByte(c)
			}
			continue
		}
		if !all {
			b.WriteByte(c)
			continue
		}
		if c >= 0x80 {
			b.WriteString("M-")
			c -= 0x80
		}
		switch {
		case c == 0x7f:
			b.WriteString("^?")
		case c < ' ':
			b.WriteByte('^')
			b.WriteByte(c + '@')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var tacOptions = getopt.New("brs:", "before=b", "regex=r", "separator:=s")

// tac holds each file whole: the last line comes first.
func tac(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(tacOptions, 1)
	if err != nil {
		return err
	}
	c.Opening = "failed to open '%s' for reading"
	separator, before := []byte("\n"), false
	for _, o := range options {
		switch o.Name {
		case "s":
			if separator = []byte(o.Value); o.Value == "" {
				separator = []byte{0}
			}
		case "b":
			before = true
		}
	}
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		data, err := c.ReadAll(in)
		if err != nil {
			return err
		}
		return reverse(ctx, c, data, separator, before)
	})
}

func reverse(ctx context.Context, c *tool.Call, data, separator []byte, before bool) error {
	for n := 1; len(data) > 0; n++ {
		if n%1024 == 0 {
			if err := c.Step(ctx, 100); err != nil {
				return err
			}
		}
		cut := 0
		if before {
			cut = max(bytes.LastIndex(data, separator), 0)
		} else if i := bytes.LastIndex(data[:max(len(data)-len(separator), 0)], separator); i >= 0 {
			cut = i + len(separator)
		}
		if _, err := c.Out.Write(data[cut:]); err != nil {
			return err
		}
		data = data[:cut]
	}
	return nil
}

var revOptions = getopt.New("0", "zero=0")

func rev(ctx context.Context, c *tool.Call) error {
	_, files, err := c.Options(revOptions, 1)
	if err != nil {
		return err
	}
	c.Opening = "cannot open %s"
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			// What is no UTF-8 is kept as it is, byte by byte.
			for rest := line; len(rest) > 0; {
				_, size := utf8.DecodeLastRune(rest)
				_, _ = c.Out.Write(rest[len(rest)-size:])
				rest = rest[:len(rest)-size]
			}
			var err error
			if lines.Whole() {
				err = c.Out.WriteByte('\n')
			}
			if err != nil {
				return err
			}
		}
		return lines.Err()
	})
}
