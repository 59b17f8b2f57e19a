package text

import (
	"context"
	"fmt"
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
	increment int
	join      int
	format    string
	keep      bool
	separator string
	first     int
	width     int

	number, blanks int
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
	n := &numberer{Call: c, section: 1, delim: `\:`, increment: 1, join: 1, format: "rn", separator: "\t", first: 1, width: 6}
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
	number := func(to *int) error {
		v, err := strconv.Atoi(o.Value)
		if err != nil {
			return n.Die(1, "invalid number: '%s'", o.Value)
		}
		*to = v
		return nil
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
		n.format = o.Value
	case "p":
		n.keep = true
	case "s":
		n.separator = o.Value
	case "i":
		return number(&n.increment)
	case "l":
		return number(&n.join)
	case "v":
		return number(&n.first)
	case "w":
		return number(&n.width)
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
	if count := strings.Count(string(line), n.delim); count > 0 && count <= 3 && len(line) == count*len(n.delim) {
		n.section = 3 - count
		if !n.keep {
			n.number = n.first
		}
		return n.Out.WriteByte('\n')
	}
	numbered, err := n.numbers(line)
	if err != nil {
		return err
	}
	if numbered {
		format := map[string]string{"ln": "%-*d", "rn": "%*d", "rz": "%0*d"}[n.format]
		fmt.Fprintf(n.Out, format, n.width, n.number)
		_, _ = n.Out.WriteString(n.separator)
		n.number += n.increment
	} else {
		_, _ = n.Out.WriteString(strings.Repeat(" ", n.width+len(n.separator)))
	}
	_, _ = n.Out.Write(line)
	return n.Out.WriteByte('\n')
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
