package text

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var nlOptions = getopt.New("b:d:f:h:i:l:n:ps:v:w:", "body-numbering:=b", "section-delimiter:=d", "footer-numbering:=f",
	"header-numbering:=h", "line-increment:=i", "join-blank-lines:=l", "number-format:=n", "no-renumber=p",
	"number-separator:=s", "starting-line-number:=v", "number-width:=w")

// numberer is what one nl does.
type numberer struct {
	*tool.Call
	styles    [3]numbering // of header, body and footer
	section   int
	delim     string
	increment int64
	join      int64
	format    string
	keep      bool
	separator string
	first     int64
	width     int64

	number, blanks int64
	over           bool // the next number would not fit in 64 bits
	ctx            context.Context
}

// numbering says which lines get a number.
type numbering struct {
	kind byte
	re   *regex.Regexp
}

func nl(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(nlOptions, 1)
	if err != nil {
		return err
	}
	n := &numberer{Call: c, ctx: ctx, section: 1, delim: `\:`, increment: 1, join: 1, format: "rn", separator: "\t", first: 1, width: 6}
	n.styles = [3]numbering{{kind: 'n'}, {kind: 't'}, {kind: 'n'}}
	for _, o := range options {
		if err := n.set(o); err != nil {
			return err
		}
	}
	n.number = n.first
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := n.line(line); err != nil {
				return err
			}
		}
		return lines.Err()
	})
}

func (n *numberer) set(o getopt.Option) error {
	number := func(to *int64, what string, low, high int64) (err error) {
		*to, err = n.Number("invalid "+what, o.Value, tool.Bounds{Low: low, High: high, Signed: true})
		return err
	}
	switch o.Name {
	case "h", "b", "f":
		return n.setStyle(strings.Index("hbf", o.Name), o.Value)
	case "d":
		n.delim = o.Value
		if len(o.Value) == 1 {
			n.delim += ":"
		}
	case "n":
		if n.format = o.Value; n.format != "ln" && n.format != "rn" && n.format != "rz" {
			return n.Usage(1, "invalid line numbering format: '%s'", o.Value)
		}
	case "p":
		n.keep = true
	case "s":
		n.separator = o.Value
	case "i":
		return number(&n.increment, "line number increment", math.MinInt64, math.MaxInt64)
	case "l":
		return number(&n.join, "line number of blank lines", 1, math.MaxInt64)
	case "v":
		return number(&n.first, "starting line number", math.MinInt64, math.MaxInt64)
	case "w":
		return number(&n.width, "line number field width", 1, math.MaxInt32)
	}
	return nil
}

func (n *numberer) setStyle(section int, style string) error {
	if style == "" || strings.IndexByte("atnp", style[0]) < 0 {
		return n.Usage(1, "invalid %s numbering style: '%s'", [3]string{"header", "body", "footer"}[section], style)
	}
	n.styles[section] = numbering{kind: style[0]}
	if style[0] != 'p' {
		return nil
	}
	re, err := regex.Compile(style[1:], regex.Options{})
	if err != nil {
		return n.Die(1, "%s", err)
	}
	n.styles[section].re = re
	return nil
}

func (n *numberer) line(line []byte) error {
	if count := n.delimiters(line); count > 0 {
		n.section = 3 - count
		if !n.keep {
			n.number, n.over = n.first, false
		}
		return n.Out.WriteByte('\n')
	}
	numbered, err := n.numbers(line)
	if err != nil {
		return err
	}
	if numbered {
		if err := n.show(); err != nil {
			return err
		}
	} else if err := pad(n.ctx, n.Call, ' ', n.width+int64(len(n.separator))); err != nil {
		return err
	}
	_, _ = n.Out.Write(line)
	return n.Out.WriteByte('\n')
}

// delimiters returns how many delimiters a line is, when it is up to three and nothing else.
func (n *numberer) delimiters(line []byte) int {
	if len(n.delim) == 0 || len(line)%len(n.delim) != 0 {
		return 0
	}
	count := len(line) / len(n.delim)
	if count > 3 || string(line) != strings.Repeat(n.delim, count) {
		return 0
	}
	return count
}

// show prints the number of a line and what is between it and the line, and goes on to the next number.
func (n *numberer) show() error {
	if n.over {
		return n.Die(1, "line number overflow")
	}
	digits := strconv.FormatInt(n.number, 10)
	blanks := n.width - int64(len(digits))
	fill := byte(' ')
	switch n.format {
	case "ln":
		_, _ = n.Out.WriteString(digits)
		digits = ""
	case "rz":
		fill = '0'
		if rest, negative := strings.CutPrefix(digits, "-"); negative {
			_ = n.Out.WriteByte('-')
			digits = rest
		}
	}
	if err := pad(n.ctx, n.Call, fill, blanks); err != nil {
		return err
	}
	_, _ = n.Out.WriteString(digits + n.separator)
	next := n.number + n.increment
	n.over = n.increment > 0 && next < n.number || n.increment < 0 && next > n.number
	n.number = next
	return nil
}

func (n *numberer) numbers(line []byte) (bool, error) {
	switch style := n.styles[n.section]; style.kind {
	case 'a':
		if len(line) > 0 || n.join <= 1 {
			n.blanks = 0
			return true, nil
		}
		n.blanks++
		return n.blanks%n.join == 0, nil
	case 't':
		return len(line) > 0, nil
	case 'p':
		return style.re.Match(line)
	}
	return false, nil
}
