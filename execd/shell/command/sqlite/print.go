package sqlite

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// format is how rows look.
type format struct {
	mode              string
	header, headerSet bool // whether names are printed; whether that was asked for
	column, row       string
	null              string
	widths            []int // of the columns of tables; 0 for as wide as they are, less for text to the right
	wrap              int   // how wide a column of a table gets at most, 0 for as it is
	byWord, quoted    bool
	table             string // that mode insert names
}

// print runs a statement to its end and prints the rows.
func (s *session) print(stmt *sqlite3.Stmt) error {
	if !stmt.Step() {
		return stmt.Err()
	}
	names := make([]string, stmt.ColumnCount())
	for i := range names {
		names[i] = stmt.ColumnName(i)
	}
	if len(names) == 0 {
		return nil
	}
	switch s.format.mode {
	case "column", "table", "box", "markdown":
		return s.printTable(stmt, names)
	}
	p := rowPrinter{session: s, format: s.format, names: names}
	for first := true; ; first = false {
		row := make([]value, len(names))
		for i := range row {
			row[i] = valueOf(stmt, i)
		}
		if err := stmt.Err(); err != nil {
			return err
		}
		p.print(first, row)
		if !stmt.Step() {
			break
		}
		if err := s.Step(s.ctx, 1); err != nil {
			return err
		}
	}
	if s.format.mode == "json" {
		s.out.WriteString("]\n")
	}
	// Where a write has failed every later one does, and this.
	_, err := s.out.WriteString("")
	if err == nil {
		err = stmt.Err()
	}
	return err
}

// rowPrinter prints rows one by one.
type rowPrinter struct {
	*session
	format
	names []string
}

func (p *rowPrinter) print(first bool, row []value) {
	switch p.mode {
	case "line":
		p.lines(first, row)
	case "json":
		p.json(first, row)
	case "insert":
		p.insert(row)
	case "html":
		p.html(first, row)
	default:
		p.separated(first, row)
	}
}

// separated prints rows whose parts a mode writes in its way, between separators.
func (p *rowPrinter) separated(first bool, row []value) {
	cell := p.bare
	switch p.mode {
	case "csv":
		cell = p.csv
	case "quote":
		cell = quoted
	case "tcl":
		cell = p.tcl
	}
	if first && p.header {
		p.join(len(p.names), func(i int) string { return cell(value{kind: sqlite3.TEXT, text: p.names[i]}) })
	}
	p.join(len(row), func(i int) string { return cell(row[i]) })
}

func (p *rowPrinter) join(n int, cell func(int) string) {
	for i := range n {
		if i > 0 {
			p.out.WriteString(p.column)
		}
		p.out.WriteString(cell(i))
	}
	p.out.WriteString(p.row)
}

func (p *rowPrinter) bare(v value) string {
	if v.kind == sqlite3.NULL {
		return p.null
	}
	return v.plain()
}

func (p *rowPrinter) csv(v value) string {
	if v.kind == sqlite3.NULL {
		return p.null
	}
	text := v.plain()
	special := func(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r >= 0x7f }
	if text != "" && strings.IndexFunc(text, special) < 0 && !strings.Contains(text, p.column) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func (p *rowPrinter) tcl(v value) string { return cString(p.bare(v)) }

// cString writes text as a string of C.
func cString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (p *rowPrinter) lines(first bool, row []value) {
	if !first {
		p.out.WriteString(p.row)
	}
	width := 5
	for _, name := range p.names {
		width = max(width, len(name))
	}
	for i, v := range row {
		fmt.Fprintf(p.out, "%*s = %s%s", width, p.names[i], p.bare(v), p.row)
	}
}

func (p *rowPrinter) insert(row []value) {
	p.out.WriteString("INSERT INTO " + quoteName(p.table))
	if p.header {
		for i, name := range p.names {
			p.out.WriteString(map[bool]string{true: "(", false: ","}[i == 0] + quoteName(name))
		}
		p.out.WriteString(")")
	}
	for i, v := range row {
		p.out.WriteString(map[bool]string{true: " VALUES(", false: ","}[i == 0] + quotedLine(v))
	}
	p.out.WriteString(");\n")
}

var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

func (p *rowPrinter) html(first bool, row []value) {
	line := func(tag string, cell func(int) string) {
		p.out.WriteString("<TR>")
		for i := range row {
			p.out.WriteString("<" + tag + ">" + htmlText.Replace(cell(i)) + "</" + tag + ">\n")
		}
		p.out.WriteString("</TR>\n")
	}
	if first && p.header {
		line("TH", func(i int) string { return p.names[i] })
	}
	line("TD", func(i int) string { return p.bare(row[i]) })
}

func (p *rowPrinter) json(first bool, row []value) {
	p.out.WriteString(map[bool]string{true: "[{", false: ",\n{"}[first])
	for i, v := range row {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.out.WriteString(jsonString(p.names[i]) + ":")
		switch v.kind {
		case sqlite3.NULL:
			p.out.WriteString("null")
		case sqlite3.INTEGER:
			p.out.WriteString(v.text)
		case sqlite3.FLOAT:
			p.out.WriteString(realText(v.real))
		case sqlite3.BLOB:
			p.out.WriteString(jsonString(v.text))
		default:
			p.out.WriteString(jsonString(v.plain()))
		}
	}
	p.out.WriteByte('}')
}

// jsonString writes text as JSON has it; bytes that are no UTF-8 stay as they are.
func jsonString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case r < ' ':
			if short := strings.IndexRune("\b\f\n\r\t", r); short >= 0 {
				b.WriteByte('\\')
				b.WriteByte("bfnrt"[short])
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	b.WriteByte('"')
	return b.String()
}

// planNode is a row of EXPLAIN QUERY PLAN.
type planNode struct {
	id, parent int
	text       string
}

// plan prints how SQLite would run a statement.
func (s *session) plan(sql string) error {
	stmt, _, err := s.conn.Prepare(sql)
	if err != nil || stmt == nil {
		return nil // the statement itself will say it
	}
	defer stmt.Close()
	return s.printPlan(stmt)
}

// printPlan prints the rows of EXPLAIN QUERY PLAN as a tree.
func (s *session) printPlan(stmt *sqlite3.Stmt) error {
	var nodes []planNode
	for stmt.Step() {
		nodes = append(nodes, planNode{stmt.ColumnInt(0), stmt.ColumnInt(1), stmt.ColumnText(3)})
	}
	if err := stmt.Err(); err != nil || len(nodes) == 0 {
		return err
	}
	s.out.WriteString("QUERY PLAN\n")
	s.planBelow(nodes, 0, "")
	_, err := s.out.WriteString("")
	return err
}

func (s *session) planBelow(nodes []planNode, parent int, indent string) {
	last := -1
	for i, n := range nodes {
		if n.parent == parent {
			last = i
		}
	}
	for i, n := range nodes {
		if n.parent != parent {
			continue
		}
		branch, below := "|--", "|  "
		if i == last {
			branch, below = "`--", "   "
		}
		s.out.WriteString(indent + branch + n.text + "\n")
		s.planBelow(nodes, n.id, indent+below)
	}
}
