package text

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var commOptions = getopt.New("123z", "check-order", "nocheck-order", "output-delimiter:", "total", "zero-terminated=z")

// sorted reads a file whose lines must be in order.
type sorted struct {
	lines   *tool.Lines
	line    []byte
	ok      bool
	said    bool
	lenient bool // join, until it has seen a line that has no partner
	n       int  // lines read
	ordered func(a, b []byte) bool
}

// advance reads the next line, and says once when it is out of order.
func (s *sorted) advance(disorder func()) error {
	last := append([]byte(nil), s.line...)
	had := s.ok
	s.line, s.ok = s.lines.Next()
	s.n++
	if s.ok && had && !s.said && !s.lenient && !s.ordered(last, s.line) {
		s.said = true
		disorder()
	}
	return s.lines.Err()
}

func openPair(ctx context.Context, c *tool.Call, files []string, end byte) (pair [2]*sorted, closing func(), err error) {
	var opened []*tool.Input
	closing = func() {
		for _, in := range opened {
			_ = in.Close()
		}
	}
	for i, name := range files {
		in, err := c.Open(ctx, name)
		if err != nil {
			if err = c.FaultAt(ctx, name, err); err == nil {
				err = tool.Exit(1)
			}
			closing()
			return pair, nil, err
		}
		opened = append(opened, in)
		pair[i] = &sorted{lines: c.Records(in, end), ordered: func(a, b []byte) bool { return bytes.Compare(a, b) <= 0 }}
	}
	return pair, closing, nil
}

func twoFiles(c *tool.Call, files []string) error {
	switch {
	case len(files) == 0:
		return c.Usage(1, "missing operand")
	case len(files) == 1:
		return c.Usage(1, "missing operand after '%s'", files[0])
	case len(files) > 2:
		return c.Usage(1, "extra operand '%s'", files[2])
	}
	return nil
}

func comm(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(commOptions, 1)
	if err != nil {
		return err
	}
	delimited := false
	hide, delim, end, total, check, strict := [4]bool{}, "\t", byte('\n'), false, true, false
	for _, o := range options {
		switch o.Name {
		case "1", "2", "3":
			hide[o.Name[0]-'0'] = true
		case "output-delimiter":
			if delimited && delim != o.Value {
				return c.Die(1, "multiple output delimiters specified")
			}
			if delim, delimited = o.Value, true; delim == "" {
				delim = "\x00"
			}
		case "total":
			total = true
		case "z":
			end = 0
		case "check-order":
			check, strict = true, true
		case "nocheck-order":
			check, strict = false, false
		}
	}
	if err := twoFiles(c, files); err != nil {
		return err
	}
	pair, closing, err := openPair(ctx, c, files, end)
	if err != nil {
		return err
	}
	defer closing()
	var sums [4]int
	err = commMerge(c, pair, check, strict, func(column int, line []byte) error {
		sums[column]++
		if hide[column] {
			return nil
		}
		for before := 1; before < column; before++ {
			if !hide[before] {
				_, _ = c.Out.WriteString(delim)
			}
		}
		_, _ = c.Out.Write(line)
		return c.Out.WriteByte(end)
	})
	if total && err == nil {
		fmt.Fprintf(c.Out, "%s%c", strings.Join([]string{fmt.Sprint(sums[1]), fmt.Sprint(sums[2]), fmt.Sprint(sums[3]),
			"total"}, delim), end)
	}
	return err
}

// commMerge calls show with each line and its column: only in the first, only in the second, in both. Strict ends at the
// first line that is out of order.
func commMerge(c *tool.Call, pair [2]*sorted, check, strict bool, show func(column int, line []byte) error) error {
	disorder := func(i int) func() {
		return func() {
			if check {
				c.Fault("file %d is not in sorted order", i+1)
			}
		}
	}
	for i, s := range pair {
		if err := s.advance(disorder(i)); err != nil {
			return err
		}
	}
	for (pair[0].ok || pair[1].ok) && !(strict && c.Status != 0) {
		order := compareLines(pair)
		column := map[int]int{-1: 1, 0: 3, 1: 2}[order]
		line := pair[0].line
		if order > 0 {
			line = pair[1].line
		}
		if err := show(column, line); err != nil {
			return err
		}
		for i, s := range pair {
			if i == 0 && order <= 0 || i == 1 && order >= 0 {
				if err := s.advance(disorder(i)); err != nil {
					return err
				}
			}
		}
	}
	if c.Status != 0 && !strict {
		c.Say("input is not in sorted order")
	}
	return nil
}

func compareLines(pair [2]*sorted) int {
	switch {
	case !pair[1].ok:
		return -1
	case !pair[0].ok:
		return 1
	}
	return bytes.Compare(pair[0].line, pair[1].line)
}
