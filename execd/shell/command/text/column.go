package text

import (
	"context"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var columnOptions = getopt.New("c:eH:l:LN:no:O:R:s:tx", "output-width:=c", "table-hide:=H", "table-columns-limit:=l",
	"keep-empty-lines=L", "table-columns:=N", "output-separator:=o", "table-order:=O", "table-right:=R", "separator:=s",
	"table=t", "fillrows=x")

// columns is what one column does.
type columns struct {
	*tool.Call
	ctx       context.Context
	table     bool
	fillRows  bool
	keepEmpty bool
	width     int
	separator string // characters that separate fields; "" for blanks
	between   string
	names     []string
	right     map[string]bool
	hide      map[string]bool
	limit     int
}

func column(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(columnOptions, 1)
	if err != nil {
		return err
	}
	k := &columns{Call: c, ctx: ctx, width: 80, between: "  ", right: map[string]bool{}, hide: map[string]bool{}}
	if w, ok := c.Getenv("COLUMNS"); ok {
		if n, err := strconv.Atoi(w); err == nil && n > 0 {
			k.width = n
		}
	}
	for _, o := range options {
		k.set(o)
	}
	var lines []string
	err = c.Each(ctx, files, func(_ string, in *tool.Input) error {
		l := c.Lines(in)
		for line, ok := l.Next(); ok; line, ok = l.Next() {
			if strings.TrimSpace(string(line)) == "" && !k.keepEmpty {
				continue
			}
			if err := c.Take(int64(len(line))*2 + 128); err != nil { // with what leads to it and to its fields
				return err
			}
			lines = append(lines, string(line))
		}
		return l.Err()
	})
	if err != nil {
		return err
	}
	if k.table {
		return k.printTable(lines)
	}
	return k.printList(lines)
}

func (k *columns) set(o getopt.Option) {
	list := strings.Split(o.Value, ",")
	switch o.Name {
	case "t":
		k.table = true
	case "x":
		k.fillRows = true
	case "L":
		k.keepEmpty = true
	case "s":
		k.separator = o.Value
	case "o":
		k.between = o.Value
	case "c":
		if n, err := strconv.Atoi(o.Value); err == nil {
			k.width = n
		}
	case "l":
		k.limit, _ = strconv.Atoi(o.Value)
	case "N":
		k.names = list
	case "R":
		for _, name := range list {
			k.right[name] = true
		}
	case "H":
		for _, name := range list {
			k.hide[name] = true
		}
	}
}

func (k *columns) split(line string) []string {
	var fields []string
	if k.separator == "" {
		fields = strings.Fields(line)
	} else {
		for {
			i := strings.IndexAny(line, k.separator)
			if i < 0 {
				fields = append(fields, line)
				break
			}
			fields, line = append(fields, line[:i]), line[i+1:]
		}
	}
	if k.limit > 0 && len(fields) > k.limit {
		fields = append(fields[:k.limit-1:k.limit-1], strings.Join(fields[k.limit-1:], " "))
	}
	return fields
}

func (k *columns) is(set map[string]bool, i int) bool {
	return set[strconv.Itoa(i+1)] || i < len(k.names) && set[k.names[i]]
}

func (k *columns) printTable(lines []string) error {
	var rows [][]string
	if k.names != nil {
		rows = append(rows, k.names)
	}
	for i, line := range lines {
		if err := k.pause(i); err != nil {
			return err
		}
		rows = append(rows, k.split(line))
	}
	var widths []int
	for _, r := range rows {
		for i, field := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displayWidth(field))
		}
	}
	for i, r := range rows {
		if err := k.pause(i); err != nil {
			return err
		}
		if err := k.printRow(r, widths); err != nil {
			return err
		}
	}
	return nil
}

// printRow pads all but the last column; a row that is shorter than the table is padded too.
func (k *columns) printRow(r []string, widths []int) error {
	last := len(widths) - 1
	for last > 0 && k.is(k.hide, last) {
		last--
	}
	for i, w := range widths {
		if k.is(k.hide, i) {
			continue
		}
		field := ""
		if i < len(r) {
			field = r[i]
		}
		pad := strings.Repeat(" ", w-displayWidth(field))
		switch {
		case k.is(k.right, i):
			field = pad + field
		case i != last:
			field += pad
		}
		_, _ = k.Out.WriteString(field)
		if i != last {
			_, _ = k.Out.WriteString(k.between)
		}
	}
	return k.Out.WriteByte('\n')
}

// printList fills columns that are as wide as the longest line, to the next tab stop.
func (k *columns) printList(lines []string) error {
	width := 0
	for _, line := range lines {
		width = max(width, displayWidth(line))
	}
	width = (width + 8) / 8 * 8
	across := max(k.width/width, 1)
	down := (len(lines) + across - 1) / across
	for row := range down {
		if err := k.pause(row); err != nil {
			return err
		}
		at, column := 0, 0
		for i := range across {
			n := i*down + row
			if k.fillRows {
				n = row*across + i
			}
			if n >= len(lines) {
				break
			}
			for ; i > 0 && at < column; at = (at + 8) / 8 * 8 {
				_ = k.Out.WriteByte('\t')
			}
			_, _ = k.Out.WriteString(lines[n])
			at, column = column+displayWidth(lines[n]), column+width
		}
		if err := k.Out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// pause looks at the context now and then.
func (k *columns) pause(row int) error {
	if row%1024 != 1023 {
		return nil
	}
	return k.Step(k.ctx, 100)
}

func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}
