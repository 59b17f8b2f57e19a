package sqlite

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// value is one of a row's.
type value struct {
	kind sqlite3.Datatype
	text string  // a blob's bytes; empty for NULL
	real float64 // of a FLOAT
}

func valueOf(stmt *sqlite3.Stmt, column int) value {
	v := value{kind: stmt.ColumnType(column)}
	switch v.kind {
	case sqlite3.NULL:
	case sqlite3.BLOB:
		v.text = string(stmt.ColumnRawBlob(column))
	case sqlite3.FLOAT:
		v.real = stmt.ColumnFloat(column)
		v.text = stmt.ColumnText(column)
	default:
		v.text = stmt.ColumnText(column)
	}
	return v
}

// bind makes a parameter of a statement this value.
func (v value) bind(stmt *sqlite3.Stmt, i int) error {
	switch v.kind {
	case sqlite3.NULL:
		return stmt.BindNull(i)
	case sqlite3.BLOB:
		return stmt.BindBlob(i, []byte(v.text))
	case sqlite3.FLOAT:
		return stmt.BindFloat(i, v.real)
	case sqlite3.INTEGER:
		n, err := strconv.ParseInt(v.text, 10, 64)
		if err != nil {
			return err
		}
		return stmt.BindInt64(i, n)
	}
	return stmt.BindText(i, v.text)
}

// plain returns a value as text up to its first NUL, as C has it.
func (v value) plain() string {
	text, _, _ := strings.Cut(v.text, "\x00")
	return text
}

// quoted writes a value as SQL.
func quoted(v value) string {
	switch v.kind {
	case sqlite3.NULL:
		return "NULL"
	case sqlite3.INTEGER:
		return v.text
	case sqlite3.FLOAT:
		return realText(v.real)
	case sqlite3.BLOB:
		return "X'" + hex.EncodeToString([]byte(v.text)) + "'"
	}
	return quote(v.plain())
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// quotedLine is quoted, with line breaks spelled so that the text is of one line.
func quotedLine(v value) string {
	text := quoted(v)
	if v.kind != sqlite3.TEXT || !strings.ContainsAny(text, "\r\n") {
		return text
	}
	for _, c := range []struct{ char, spelled, other, code string }{
		{"\r", `\r`, `\015`, "13"}, {"\n", `\n`, `\012`, "10"},
	} {
		if !strings.Contains(text, c.char) {
			continue
		}
		as := c.spelled
		for n := 0; strings.Contains(text, as); n++ {
			as = "(" + c.other + strconv.Itoa(n) + ")"
			if n == 0 {
				as = c.other
			}
		}
		text = "replace(" + strings.ReplaceAll(text, c.char, as) + ",'" + as + "',char(" + c.code + "))"
	}
	return text
}

// realText writes a number so that it is read as the same one again, in the way of printf's %!.20g.
func realText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "1e999"
	case math.IsInf(f, -1):
		return "-1e999"
	case math.IsNaN(f):
		return "NULL"
	}
	b := strconv.AppendFloat(nil, f, 'e', -1, 64)
	mantissa, exponent, _ := bytes.Cut(b, []byte("e"))
	if n, _ := strconv.Atoi(string(exponent)); n >= -5 && n < 20 {
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	if !bytes.Contains(mantissa, []byte(".")) {
		mantissa = append(mantissa[:len(mantissa):len(mantissa)], ".0"...)
	}
	return string(mantissa) + "e" + string(exponent)
}

// quoteName writes a name as SQL: in double quotes where it must be.
func quoteName(name string) string {
	bare := name != "" && !keywords[strings.ToUpper(name)] && (name[0] < '0' || name[0] > '9')
	for i := range len(name) {
		c := name[i]
		bare = bare && (c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z')
	}
	if bare {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// keywords are those of SQLite's grammar.
var keywords = makeSet(`ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN
BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT
EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF
IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT
MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA
PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT
ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE
USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT`)

func makeSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
