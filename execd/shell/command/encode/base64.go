package encode

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"io"
	"strconv"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var baseOptions = getopt.New("diw:", "decode=d", "ignore-garbage=i", "wrap:=w")

func base64Body(ctx context.Context, c *tool.Call) error {
	return recode(ctx, c, func(w io.Writer) io.WriteCloser { return base64.NewEncoder(base64.StdEncoding, w) },
		func(r io.Reader) io.Reader { return base64.NewDecoder(base64.StdEncoding, r) },
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
}

func base32Body(ctx context.Context, c *tool.Call) error {
	return recode(ctx, c, func(w io.Writer) io.WriteCloser { return base32.NewEncoder(base32.StdEncoding, w) },
		func(r io.Reader) io.Reader { return base32.NewDecoder(base32.StdEncoding, r) },
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567=")
}

func recode(ctx context.Context, c *tool.Call, encoder func(io.Writer) io.WriteCloser, decoder func(io.Reader) io.Reader,
	alphabet string) error {
	options, names, err := c.Options(baseOptions, 1)
	if err != nil {
		return err
	}
	decode, garbage, width := false, false, 76
	for _, o := range options {
		switch o.Name {
		case "d":
			decode = true
		case "i":
			garbage = true
		case "w":
			if width, err = strconv.Atoi(o.Value); err != nil || width < 0 {
				return c.Die(1, "invalid wrap size: '%s'", o.Value)
			}
		}
	}
	if len(names) > 1 {
		return c.Usage(1, "extra operand '%s'", names[1])
	}
	name := append(names, "-")[0]
	in, err := c.Open(ctx, name)
	if err != nil {
		return c.Die(1, "%s: %s", name, command.Reason(err))
	}
	defer in.Close()
	if decode {
		f := &filter{r: in, drop: garbage}
		for _, b := range []byte(alphabet) {
			f.keep[b] = true
		}
		_, err := io.Copy(c.Out, decoder(f))
		var corrupt base64.CorruptInputError
		var corrupt32 base32.CorruptInputError
		if f.bad || errors.As(err, &corrupt) || errors.As(err, &corrupt32) || errors.Is(err, io.ErrUnexpectedEOF) {
			if flushed := c.Out.Flush(); flushed != nil {
				return flushed
			}
			return c.Die(1, "invalid input")
		}
		return err
	}
	w := &wrapper{w: c.Out, width: width}
	e := encoder(w)
	if _, err := io.Copy(e, in); err != nil {
		return err
	}
	return errors.Join(e.Close(), w.end())
}

// filter passes the letters of an alphabet on, and newlines not. What else comes is dropped, or bad and the end.
type filter struct {
	r    io.Reader
	keep [256]bool
	drop bool
	bad  bool
}

// Read implements io.Reader.
func (f *filter) Read(p []byte) (int, error) {
	if f.bad {
		return 0, io.EOF
	}
	n, err := f.r.Read(p)
	out := p[:0]
	for _, b := range p[:n] {
		switch {
		case f.keep[b]:
			out = append(out, b)
		case b != '\n' && !f.drop:
			f.bad = true
		}
		if f.bad {
			break
		}
	}
	if f.bad {
		return len(out), io.EOF
	}
	return len(out), err
}

// wrapper breaks lines.
type wrapper struct {
	w      io.Writer
	width  int
	column int
}

// Write implements io.Writer.
func (w *wrapper) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := p
		if w.width > 0 {
			if w.column == w.width {
				if _, err := io.WriteString(w.w, "\n"); err != nil {
					return 0, err
				}
				w.column = 0
			}
			part = p[:min(len(p), w.width-w.column)]
		}
		if _, err := w.w.Write(part); err != nil {
			return 0, err
		}
		w.column, p = w.column+len(part), p[len(part):]
	}
	return n, nil
}

// end ends the last line, if there is one and lines are broken at all.
func (w *wrapper) end() error {
	if w.width == 0 || w.column == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, "\n")
	return err
}
