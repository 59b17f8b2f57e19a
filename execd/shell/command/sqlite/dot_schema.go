package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// attached is a database of the connection.
type attached struct{ name, file string }

func (s *session) databases() ([]attached, error) {
	var found []attached
	err := s.query("PRAGMA database_list", nil, func(get func(int) value) {
		found = append(found, attached{get(1).text, get(2).text})
	})
	return found, err
}

func (s *session) databasesCommand([]string) error {
	found, err := s.databases()
	if err != nil {
		return err
	}
	for _, db := range found {
		mode := "r/w"
		if readOnly, _ := s.conn.ReadOnly(db.name); readOnly {
			mode = "r/o"
		}
		if db.file == "" {
			db.file = `""`
		}
		if db.name != "temp" {
			fmt.Fprintf(s.out, "%s: %s %s\n", db.name, db.file, mode)
		}
	}
	return nil
}

func text(t string) value { return value{kind: sqlite3.TEXT, text: t} }

// pattern returns the second argument, or one that everything matches.
func pattern(args []string) value {
	if len(args) > 1 {
		return text(args[1])
	}
	return text("%")
}

func (s *session) tablesCommand(args []string) error {
	return s.list("type IN ('table','view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name LIKE ?1", pattern(args))
}

func (s *session) indexesCommand(args []string) error {
	return s.list("type = 'index' AND tbl_name LIKE ?1", pattern(args))
}

// list prints the names in all schemas that fit, in columns.
func (s *session) list(where string, like value) error {
	dbs, err := s.databases()
	if err != nil {
		return err
	}
	var names []string
	for _, db := range dbs {
		sql := "SELECT name FROM " + quoteName(db.name) + ".sqlite_schema WHERE " + where
		err := s.query(sql, []value{like}, func(get func(int) value) {
			name := get(0).text
			if db.name != "main" && db.name != "temp" {
				name = db.name + "." + name
			}
			names = append(names, name)
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(names)
	width := 0
	for _, name := range names {
		width = max(width, utf8.RuneCountInString(name))
	}
	columns := max(80/(width+2), 1)
	rows := (len(names) + columns - 1) / columns
	for i := range rows {
		for j := i; j < len(names); j += rows {
			if j > i {
				s.out.WriteString("  ")
			}
			s.out.WriteString(names[j] + strings.Repeat(" ", width-utf8.RuneCountInString(names[j])))
		}
		s.out.WriteString("\n")
	}
	_, err = s.out.WriteString("")
	return err
}

// builtSchema is what .schema says of the tables that every database has.
const builtSchema = `CREATE TABLE %s (
  type text,
  name text,
  tbl_name text,
  rootpage integer,
  sql text
);
`

// schemaCommand is .schema.
func (s *session) schemaCommand(args []string) error {
	like, inner := "", true
	for _, a := range args[1:] {
		switch strings.TrimLeft(a, "-") {
		case "indent":
		case "nosys":
			inner = false
		default:
			like = a
		}
	}
	switch strings.ToLower(like) {
	case "sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master":
		_, err := fmt.Fprintf(s.out, builtSchema, like)
		return err
	}
	dbs, err := s.databases()
	if err != nil {
		return err
	}
	for _, db := range dbs {
		if err := s.schemaOf(db.name, like, inner); err != nil {
			return err
		}
	}
	return nil
}

// schemaOf prints the statements that made what fits a pattern, in one database.
func (s *session) schemaOf(db, like string, inner bool) error {
	where, bind := "", []value(nil)
	if like != "" {
		if name, table, ok := strings.Cut(like, "."); ok && strings.EqualFold(name, db) {
			like = table
		}
		where = ` AND lower(tbl_name) LIKE lower(?1) ESCAPE '\'`
		if strings.ContainsAny(like, "*?[") {
			where = " AND lower(tbl_name) GLOB lower(?1)"
		}
		bind = []value{text(like)}
	}
	if !inner {
		where += ` AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	}
	type made struct{ kind, name, sql string }
	var all []made
	sql := "SELECT type, name, sql FROM " + quoteName(db) + ".sqlite_schema WHERE sql IS NOT NULL" + where + " ORDER BY rowid"
	err := s.query(sql, bind, func(get func(int) value) {
		all = append(all, made{get(0).text, get(1).text, get(2).text})
	})
	for _, m := range all {
		if err != nil {
			return err
		}
		sql := inSchema(m.sql, db)
		if m.kind == "view" || strings.HasPrefix(strings.ToUpper(m.sql), "CREATE VIRTUAL ") {
			sql += s.columnsComment(db, m.name)
		}
		err = s.schemaLine(sql)
	}
	return err
}

// inSchema puts the name of an attached database before that of what a statement makes.
func inSchema(sql, db string) string {
	if db == "main" {
		return sql
	}
	for _, head := range []string{"CREATE TABLE ", "CREATE VIEW ", "CREATE TRIGGER ", "CREATE INDEX ", "CREATE UNIQUE INDEX ",
		"CREATE VIRTUAL TABLE "} {
		if rest, ok := strings.CutPrefix(sql, head); ok {
			return head + quoteName(db) + "." + rest
		}
	}
	return sql
}

// columnsComment names the columns of what does not say them itself. Of what is broken it says nothing.
func (s *session) columnsComment(db, name string) string {
	stmt, _, err := s.conn.Prepare("SELECT * FROM " + quoteName(db) + "." + quoteName(name))
	if err != nil || stmt == nil {
		return ""
	}
	defer stmt.Close()
	var names []string
	for i := range stmt.ColumnCount() {
		names = append(names, quoteName(stmt.ColumnName(i)))
	}
	return "\n/* " + quoteName(name) + "(" + strings.Join(names, ",") + ") */"
}

// schemaLine prints a statement; that of a table whose name is in quotes may find the table there already.
func (s *session) schemaLine(sql string) error {
	if rest, ok := strings.CutPrefix(sql, "CREATE TABLE "); ok && rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		sql = "CREATE TABLE IF NOT EXISTS " + rest
	}
	_, err := s.out.WriteString(sql + ";\n")
	return err
}

// fullSchemaCommand is .fullschema.
func (s *session) fullSchemaCommand([]string) error {
	var all []string
	err := s.query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`,
		nil, func(get func(int) value) { all = append(all, get(0).text) })
	for _, sql := range all {
		if err == nil {
			err = s.schemaLine(sql)
		}
	}
	if err != nil {
		return err
	}
	stats := false
	err = s.query(`SELECT 1 FROM sqlite_schema WHERE name GLOB 'sqlite_stat[134]'`, nil, func(func(int) value) { stats = true })
	if err != nil {
		return err
	}
	if !stats {
		_, err = s.out.WriteString("/* No STAT tables available */\n")
		return err
	}
	s.out.WriteString("ANALYZE sqlite_schema;\n")
	d := &dumper{session: s}
	for _, table := range []string{"sqlite_stat1", "sqlite_stat4"} {
		if err := d.rows(table); err != nil {
			return err
		}
	}
	_, err = s.out.WriteString("ANALYZE sqlite_schema;\n")
	return err
}
