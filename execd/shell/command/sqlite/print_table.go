package sqlite

import (
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// table is what the modes that need to know the widths of columns collect.
type table struct {
	format
	names  []string
	lines  [][]string
	ends   []bool // whether a line is the last of its row
	widths []int  // in characters
	tall   bool   // whether a row has several lines
}

func (s *session) printTable(stmt *sqlite3.Stmt, names []string) error {
	t := &table{format: s.format, widths: make([]int, len(names))}
	for i, name := range names {
		t.widths[i] = max(t.width(i), -t.width(i))
		cell, _ := t.piece(i, name)
		t.names = append(t.names, cell)
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
	}
	for {
		row := make([]value, len(names))
		size := int64(0)
		for i := range row {
			row[i] = valueOf(stmt, i)
			size += 64 + int64(len(row[i].text))
		}
		if err := s.Take(size); err != nil {
			return err
		}
		if err := s.Step(s.ctx, 1); err != nil {
			return err
		}
		t.add(row)
		if !stmt.Step() {
			break
		}
	}
	if err := stmt.Err(); err != nil {
		return err
	}
	t.write(s.out)
	_, err := s.out.WriteString("")
	return err
}

// width returns what .width says of a column.
func (t *table) width(i int) int {
	if i < len(t.format.widths) {
		return t.format.widths[i]
	}
	return 0
}

// add adds a row: as many lines as its tallest cell has.
func (t *table) add(row []value) {
	rest := make([]string, len(row))
	more := make([]bool, len(row))
	for i, v := range row {
		switch {
		case t.quoted:
			rest[i] = quoted(v)
		case v.kind == sqlite3.NULL:
			rest[i] = t.null
		default:
			rest[i] = v.plain()
		}
		more[i] = true
	}
	for again := true; again; {
		again = false
		line := make([]string, len(row))
		for i := range row {
			if !more[i] {
				continue
			}
			line[i], rest[i] = t.piece(i, rest[i])
			more[i] = rest[i] != ""
			again = again || more[i]
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(line[i]))
		}
		t.lines, t.ends = append(t.lines, line), append(t.ends, !again)
		t.tall = t.tall || again
	}
}

// piece cuts what fits into one line of a column off a text: to a line break, to the width that is set, or to that where
// text is wrapped.
func (t *table) piece(column int, text string) (line, rest string) {
	limit := t.width(column)
	if limit == 0 {
		limit = t.wrap
	}
	limit = max(limit, -limit)
	var b strings.Builder
	n, i := 0, 0
	for i < len(text) && (limit == 0 || n < limit) && text[i] != '\n' && text[i] != '\r' {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if r == '\t' {
			for n++; n&7 != 0 && (limit == 0 || n < limit); n++ {
				b.WriteByte(' ')
			}
			b.WriteByte(' ')
			continue
		}
		n++
		b.WriteString(text[i-size : i])
	}
	line = b.String()
	if t.byWord && i < len(text) && limit > 0 && n >= limit && text[i] != ' ' && text[i] != '\n' {
		if space := strings.LastIndexAny(line, " -"); space > len(line)/2 {
			i -= len(line) - space - 1
			line = line[:space+1]
		}
	}
	rest = text[i:]
	switch {
	case strings.HasPrefix(rest, "\r\n"):
		rest = rest[2:]
	case strings.HasPrefix(rest, "\n"), strings.HasPrefix(rest, "\r"):
		rest = rest[1:]
	}
	return line, rest
}

// border is what a table is drawn with.
type border struct {
	left, between, right string
	top, middle, bottom  [4]string // the line, and its left end, crossings and right end
}

var (
	boxBorder = border{
		left: "│ ", between: " │ ", right: " │\n", top: [4]string{"─", "┌", "┬", "┐"},
		middle: [4]string{"─", "├", "┼", "┤"}, bottom: [4]string{"─", "└", "┴", "┘"},
	}
	tableBorder = border{
		left: "| ", between: " | ", right: " |\n", top: [4]string{"-", "+", "+", "+"},
		middle: [4]string{"-", "+", "+", "+"}, bottom: [4]string{"-", "+", "+", "+"},
	}
	markdownBorder = border{left: "| ", between: " | ", right: " |\n", middle: [4]string{"-", "|", "|", "|"}}
	columnBorder   = border{between: "  ", right: "\n"}
)

// textWriter is a bufio.Writer, whose first error is kept.
type textWriter interface{ WriteString(string) (int, error) }

func (t *table) write(w textWriter) {
	b := map[string]border{"box": boxBorder, "table": tableBorder, "markdown": markdownBorder, "column": columnBorder}[t.mode]
	t.rule(w, b.top)
	t.head(w, b)
	for i, line := range t.lines {
		t.line(w, b, line)
		if t.tall && t.ends[i] && i+1 < len(t.lines) {
			switch t.mode {
			case "column":
				w.WriteString("\n")
			case "box", "table":
				t.rule(w, b.middle)
			}
		}
	}
	t.rule(w, b.bottom)
}

func (t *table) head(w textWriter, b border) {
	if t.mode == "column" {
		if t.header {
			t.line(w, b, t.names)
			dashes := make([]string, len(t.names))
			for i := range dashes {
				dashes[i] = strings.Repeat("-", t.widths[i])
			}
			t.line(w, b, dashes)
		}
		return
	}
	w.WriteString(b.left)
	for i, name := range t.names {
		if i > 0 {
			w.WriteString(b.between)
		}
		room := max(t.widths[i]-utf8.RuneCountInString(name), 0)
		w.WriteString(strings.Repeat(" ", room/2) + name + strings.Repeat(" ", room-room/2))
	}
	w.WriteString(b.right)
	t.rule(w, b.middle)
}

func (t *table) rule(w textWriter, r [4]string) {
	if r[0] == "" {
		return
	}
	for i, width := range t.widths {
		if i == 0 {
			w.WriteString(r[1])
		} else {
			w.WriteString(r[2])
		}
		w.WriteString(strings.Repeat(r[0], width+2))
	}
	w.WriteString(r[3] + "\n")
}

func (t *table) line(w textWriter, b border, cells []string) {
	w.WriteString(b.left)
	for i, cell := range cells {
		if i > 0 {
			w.WriteString(b.between)
		}
		room := strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(cell), 0))
		if t.width(i) < 0 {
			w.WriteString(room + cell)
		} else {
			w.WriteString(cell + room)
		}
	}
	w.WriteString(b.right)
}
