package sqlite

import (
	"slices"
	"strings"
)

// dumper writes a database as SQL that makes it again.
type dumper struct {
	*session
	dataOnly, noSys bool
	like            []string
	virtual         bool // whether the schema is written to by hand
}

// dumpCommand is .dump.
func (s *session) dumpCommand(args []string) error {
	d := &dumper{session: s}
	for _, a := range args[1:] {
		switch option := strings.TrimLeft(a, "-"); {
		case !strings.HasPrefix(a, "-"):
			d.like = append(d.like, a)
		case option == "data-only":
			d.dataOnly = true
		case option == "nosys":
			d.noSys = true
		case option == "newlines":
		default:
			return s.wrong("Unknown option \"%s\" on \".dump\"", a)
		}
	}
	return d.dump()
}

func (d *dumper) dump() error {
	if !d.dataOnly {
		d.out.WriteString("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
	}
	// All of it is of one moment.
	if err := d.query("SAVEPOINT dump", nil, func(func(int) value) {}); err != nil {
		return err
	}
	defer func() { _ = d.query("RELEASE dump", nil, func(func(int) value) {}) }() // nothing was written
	tables, err := d.made("type = 'table' ORDER BY tbl_name = 'sqlite_sequence', rowid")
	for _, t := range tables {
		if err == nil {
			err = d.table(t)
		}
	}
	if err == nil && !d.dataOnly {
		err = d.rest()
	}
	if err != nil || d.dataOnly {
		return err
	}
	if d.virtual {
		d.out.WriteString("PRAGMA writable_schema=OFF;\n")
	}
	_, err = d.out.WriteString("COMMIT;\n")
	return err
}

// made is what the schema says of something.
type made struct{ name, kind, sql string }

func (d *dumper) made(where string) ([]made, error) {
	var all []made
	err := d.query("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL AND "+where, nil, func(get func(int) value) {
		m := made{get(0).text, get(1).text, get(2).text}
		all = append(all, m)
	})
	if len(d.like) == 0 || err != nil {
		return all, err
	}
	wanted := map[string]bool{}
	for _, like := range d.like {
		err := d.query(`SELECT name FROM sqlite_schema WHERE name LIKE ?1 ESCAPE '\'`, []value{text(like)},
			func(get func(int) value) { wanted[get(0).text] = true })
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(m made) bool { return !wanted[m.name] }), nil
}

// rest writes what is made once the rows are there.
func (d *dumper) rest() error {
	all, err := d.made("type IN ('index', 'trigger', 'view')")
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := d.schemaLine(m.sql); err != nil {
			return err
		}
	}
	return nil
}

func (d *dumper) table(t made) error {
	switch {
	case d.noSys && strings.HasPrefix(t.name, "sqlite_"):
		return nil
	case t.name == "sqlite_sequence":
		if !d.dataOnly {
			d.out.WriteString("DELETE FROM sqlite_sequence;\n")
		}
	case strings.HasPrefix(t.name, "sqlite_stat"):
		if !d.dataOnly {
			d.out.WriteString("ANALYZE sqlite_schema;\n")
		}
	case strings.HasPrefix(t.name, "sqlite_"):
		return nil
	case d.dataOnly:
	case strings.HasPrefix(strings.ToUpper(t.sql), "CREATE VIRTUAL TABLE"):
		if !d.virtual {
			d.out.WriteString("PRAGMA writable_schema=ON;\n")
			d.virtual = true
		}
		_, err := d.out.WriteString("INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table'," +
			quote(t.name) + "," + quote(t.name) + ",0," + quote(t.sql) + ");\n")
		return err
	default:
		if err := d.schemaLine(t.sql); err != nil {
			return err
		}
	}
	return d.rows(t.name)
}

// rows writes the rows of a table. Columns that are generated, or hidden, are not among them.
func (d *dumper) rows(table string) error {
	var columns []string
	err := d.query("SELECT name, hidden FROM pragma_table_xinfo(?1)", []value{text(table)}, func(get func(int) value) {
		if get(1).text == "0" {
			columns = append(columns, quoteName(get(0).text))
		}
	})
	if err != nil || len(columns) == 0 {
		return err
	}
	head := "INSERT INTO " + quoteName(table) + " VALUES("
	return d.query("SELECT "+strings.Join(columns, ",")+" FROM "+quoteName(table), nil, func(get func(int) value) {
		d.out.WriteString(head)
		for i := range columns {
			if i > 0 {
				d.out.WriteByte(',')
			}
			d.out.WriteString(quotedLine(get(i)))
		}
		d.out.WriteString(");\n")
	})
}
