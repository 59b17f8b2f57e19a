package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// importer reads a file of rows into a table.
type importer struct {
	*session
	name, table, schema string
	column, row         byte
	plain               bool // no quotes
	skip                int
	in                  *bufio.Reader
	line                int
	end                 byte // what ended the last field; 0 at the end of the file
}

// importCommand is .import.
func (s *session) importCommand(args []string) error {
	m := &importer{session: s, schema: "main"}
	column, row := s.format.column, s.format.row
	m.plain = s.format.mode == "ascii"
	var names []string
	for i := 1; i < len(args); i++ {
		switch option := strings.TrimLeft(args[i], "-"); {
		case !strings.HasPrefix(args[i], "-"):
			names = append(names, args[i])
		case option == "csv":
			column, row, m.plain = ",", "\n", false
		case option == "ascii":
			column, row, m.plain = "\x1f", "\x1e", true
		case option == "v":
		case (option == "skip" || option == "schema") && i+1 < len(args):
			i++
			if option == "skip" {
				m.skip, _ = strconv.Atoi(args[i]) // anything else is 0
			} else {
				m.schema = args[i]
			}
		default:
			return s.wrong("unknown option: \"%s\"", args[i])
		}
	}
	if len(names) != 2 {
		fmt.Fprintln(s.Stderr, "Error: missing FILE or TABLE argument. Usage:\n.import FILE TABLE")
		return errFailed
	}
	if row == "\r\n" {
		row = "\n"
		if s.format.mode == "csv" {
			s.format.row = row // as the real one leaves it
		}
	}
	if len(column) != 1 || len(row) != 1 {
		return s.wrong("multi-character or null separators not allowed for import")
	}
	m.name, m.table, m.column, m.row = names[0], names[1], column[0], row[0]
	in, err := s.Open(s.ctx, m.name)
	if err != nil {
		if tool.Ends(s.ctx, err) {
			return err
		}
		return s.wrong("cannot open \"%s\"", m.name)
	}
	defer in.Close()
	m.in = bufio.NewReaderSize(in, 64<<10)
	return m.run()
}

func (m *importer) run() error {
	if b, _ := m.in.Peek(3); string(b) == "\xef\xbb\xbf" {
		_, _ = m.in.Discard(3) // they are there
	}
	for range m.skip {
		if _, err := m.record(); err != nil {
			return m.ending(err)
		}
	}
	columns, err := m.columns()
	if err != nil {
		return err
	}
	all := quoteName(m.schema) + "." + quoteName(m.table)
	stmt, _, err := m.conn.Prepare("INSERT INTO " + all + " VALUES(?" + strings.Repeat(",?", columns-1) + ")")
	if err != nil {
		return m.failed(err)
	}
	defer stmt.Close()
	whole := m.conn.GetAutocommit()
	if whole {
		if err := m.conn.Exec("BEGIN"); err != nil {
			return m.failed(err)
		}
	}
	err = m.rows(stmt, columns)
	if whole {
		err = errors.Join(err, m.conn.Exec("COMMIT"))
	}
	if err != nil {
		return m.failed(err)
	}
	return nil
}

// failed says what of SQLite's went wrong, and passes on what ends the command.
func (m *importer) failed(err error) error {
	switch {
	case m.ended() != nil:
		return m.ended()
	case tool.Ends(m.ctx, err):
		return err
	}
	return m.wrong("%s", errorText(err))
}

func (m *importer) ending(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return m.failed(err)
}

// columns returns how many the table has, which is made of the first record if it is not there.
func (m *importer) columns() (int, error) {
	n := 0
	err := m.query("SELECT count(*) FROM pragma_table_info(?1, ?2)", []value{text(m.table), text(m.schema)},
		func(get func(int) value) { n, _ = strconv.Atoi(get(0).text) })
	if err != nil || n > 0 {
		return n, err
	}
	names, err := m.record()
	if errors.Is(err, io.EOF) {
		return 0, m.wrong("%s: empty file", m.name)
	}
	if err != nil {
		return 0, m.failed(err)
	}
	sql, seen := "CREATE TABLE "+quoteName(m.schema)+`."`+strings.ReplaceAll(m.table, `"`, `""`)+`"(`, map[string]int{}
	for i, name := range names {
		if i > 0 {
			sql += ","
			sql += " "
		} else {
			sql += "\n"
		}
		if name == "" {
			name = "?"
		}
		if seen[strings.ToLower(name)]++; seen[strings.ToLower(name)] > 1 {
			name += "_" + strconv.Itoa(seen[strings.ToLower(name)])
		}
		sql += `"` + strings.ReplaceAll(name, `"`, `""`) + `" TEXT`
	}
	if err := m.conn.Exec(sql + ")"); err != nil {
		return 0, m.failed(err)
	}
	return len(names), nil
}

func (m *importer) rows(stmt *sqlite3.Stmt, columns int) error {
	for {
		start := m.line + 1
		fields, err := m.record()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case len(fields) < columns:
			fmt.Fprintf(m.Stderr, "%s:%d: expected %d columns but found %d - filling the rest with NULL\n", m.name, start, columns, len(fields))
		case len(fields) > columns:
			fmt.Fprintf(m.Stderr, "%s:%d: expected %d columns but found %d - extras ignored\n", m.name, start, columns, len(fields))
		}
		for i := range columns {
			v := value{kind: sqlite3.NULL}
			if i < len(fields) {
				v = text(fields[i])
			}
			if err := v.bind(stmt, i+1); err != nil {
				return err
			}
		}
		if err := stmt.Exec(); err != nil {
			if m.ended() != nil {
				return err
			}
			fmt.Fprintf(m.Stderr, "%s:%d: INSERT failed: %s\n", m.name, start, errorText(err))
		}
	}
}

// record returns the fields of the next row; io.EOF after the last.
func (m *importer) record() ([]string, error) {
	var fields []string
	for {
		field, err := m.field()
		if err != nil {
			return nil, err
		}
		if len(fields) == 0 && field == "" && m.end == 0 {
			return nil, io.EOF
		}
		if len(fields) < maxColumns {
			fields = append(fields, field)
		}
		if m.end != m.column {
			return fields, nil
		}
	}
}

// field reads to the next separator. A field in quotes may hold separators, and quotes that are doubled.
func (m *importer) field() (string, error) {
	var b strings.Builder
	m.end = 0
	quoted := false
	for first := true; ; first = false {
		c, err := m.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		if c == '\n' {
			m.line++
		}
		switch {
		case first && c == '"' && !m.plain:
			quoted = true
			continue
		case quoted && c == '"':
			if next, _ := m.in.Peek(1); len(next) == 1 && next[0] == '"' {
				_, _ = m.in.Discard(1) // it is there
				b.WriteByte('"')
				continue
			}
			quoted = false
			continue
		case !quoted && (c == m.column || c == m.row):
			m.end = c
			text := b.String()
			if c == '\n' && !m.plain {
				text = strings.TrimSuffix(text, "\r")
			}
			return text, nil
		}
		if b.Len() >= maxValue {
			return "", sqlite3.TOOBIG
		}
		b.WriteByte(c)
	}
}
