package compare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var cmpOptions = getopt.New("bi:ln:s", "print-bytes=b", "ignore-initial:=i", "verbose=l", "bytes:=n", "quiet=s", "silent=s")

// comparer is what one cmp does.
type comparer struct {
	*tool.Call
	names                  []string
	print, verbose, silent bool
	limit                  int64
	width                  int // of offsets: enough for the smaller file
}

func cmp(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(cmpOptions, 2)
	if err != nil {
		return err
	}
	k := &comparer{Call: c, limit: -1}
	var skips [2]int64
	for _, o := range options {
		switch o.Name {
		case "b":
			k.print = true
		case "l":
			k.verbose = true
		case "s":
			k.silent = true
		case "n":
			if k.limit, err = tool.Size(o.Value); err != nil {
				return c.Usage(2, "invalid --bytes value '%s'", o.Value)
			}
		case "i":
			first, second, two := strings.Cut(o.Value, ":")
			skips[0], err = tool.Size(first)
			if skips[1] = skips[0]; two && err == nil {
				skips[1], err = tool.Size(second)
			}
			if err != nil {
				return c.Usage(2, "invalid --ignore-initial value '%s'", o.Value)
			}
		}
	}
	switch len(operands) {
	case 0:
		return c.Usage(2, "missing operand after '%s'", c.Args[0])
	case 1:
		operands = append(operands, "-")
	case 2:
	default:
		return c.Usage(2, "extra operand '%s'", operands[2])
	}
	k.names = operands
	return k.files(ctx, skips)
}

func (k *comparer) files(ctx context.Context, skips [2]int64) error {
	var readers [2]*bufio.Reader
	for i, name := range k.names {
		in, err := k.Open(ctx, name)
		if err != nil {
			if !k.silent {
				k.Say("%s: %s", name, command.Reason(err))
			}
			return tool.Exit(2)
		}
		defer in.Close()
		readers[i] = bufio.NewReaderSize(in, 64<<10)
		if _, err := io.CopyN(io.Discard, readers[i], skips[i]); err != nil && !errors.Is(err, io.EOF) {
			return k.Die(2, "%s: %s", name, command.Reason(err))
		}
	}
	for _, name := range k.names {
		a, err := k.FS.Stat(ctx, name)
		digits := 19
		if err == nil && name != "-" {
			digits = len(strconv.FormatUint(a.Size, 10))
		}
		if k.width == 0 || digits < k.width {
			k.width = digits
		}
	}
	return k.streams(readers)
}

func (k *comparer) streams(readers [2]*bufio.Reader) error {
	line, differ := int64(1), false
	var last byte
	for at := int64(1); k.limit < 0 || at <= k.limit; at++ {
		a, errA := readers[0].ReadByte()
		b, errB := readers[1].ReadByte()
		for i, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) {
				return k.Die(2, "%s: %s", k.names[i], command.Reason(err))
			}
		}
		switch {
		case errA != nil && errB != nil:
			if differ {
				return tool.Exit(1)
			}
			return nil
		case errA != nil:
			return k.short(0, at, line, last)
		case errB != nil:
			return k.short(1, at, line, last)
		}
		if a != b {
			differ = true
			if k.silent {
				return tool.Exit(1)
			}
			if !k.verbose {
				k.first(at, line, a, b)
				return tool.Exit(1)
			}
			k.each(at, a, b)
		}
		if last = a; a == '\n' {
			line++
		}
	}
	if differ {
		return tool.Exit(1)
	}
	return nil
}

func (k *comparer) first(at, line int64, a, b byte) {
	fmt.Fprintf(k.Out, "%s %s differ: byte %d, line %d", k.names[0], k.names[1], at, line)
	if k.print {
		fmt.Fprintf(k.Out, " is %3o %s %3o %s", a, visible(a), b, visible(b))
	}
	fmt.Fprintln(k.Out)
}

func (k *comparer) each(at int64, a, b byte) {
	if k.print {
		fmt.Fprintf(k.Out, "%*d %3o %-4s %3o %s\n", k.width, at, a, visible(a), b, visible(b))
		return
	}
	fmt.Fprintf(k.Out, "%*d %3o %3o\n", k.width, at, a, b)
}

func visible(b byte) string {
	prefix := ""
	if b >= 0x80 {
		prefix, b = "M-", b-0x80
	}
	switch {
	case b == 0x7f:
		return prefix + "^?"
	case b < ' ':
		return prefix + "^" + string(rune(b+'@'))
	}
	return prefix + string(rune(b))
}

// short says that one file ended before the other.
func (k *comparer) short(file int, at, line int64, last byte) error {
	switch {
	case k.silent:
	case at == 1:
		fmt.Fprintf(k.Stderr, "cmp: EOF on %s which is empty\n", k.names[file])
	case k.verbose:
		fmt.Fprintf(k.Stderr, "cmp: EOF on %s after byte %d\n", k.names[file], at-1)
	case last == '\n':
		fmt.Fprintf(k.Stderr, "cmp: EOF on %s after byte %d, line %d\n", k.names[file], at-1, line-1)
	default:
		fmt.Fprintf(k.Stderr, "cmp: EOF on %s after byte %d, in line %d\n", k.names[file], at-1, line)
	}
	return tool.Exit(1)
}
