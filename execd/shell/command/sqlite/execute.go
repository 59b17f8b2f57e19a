package sqlite

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// Phases in which a statement can fail, in the words of the shell.
const (
	inPrepare = "in prepare"
	stepping  = "stepping"
)

// sqlError is that a statement failed.
type sqlError struct {
	phase string
	code  int    // of SQLite, which is the exit status too
	text  string // with the place in the statement below it, if that is known
}

// Error implements error.
func (e *sqlError) Error() string { return e.phase + ", " + e.text }

// execute runs statements until one fails, which gives a *sqlError.
func (s *session) execute(sql string) error {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f")
		if sql == "" {
			return nil
		}
		head := sql
		if n, ok := cut(sql); ok {
			head = sql[:n] // what SQLite is given is copied
		}
		if err := s.one(head, sql); err != nil {
			return err
		}
		sql = sql[len(head):]
	}
}

var walMode = regexp.MustCompile(`(?i)^pragma\s+(\w+\.)?journal_mode\s*[=(]\s*['"]?wal\b`)

// one runs one statement, which is the beginning of text.
func (s *session) one(sql, text string) error {
	if walMode.MatchString(sql) {
		// Without shared memory the index of a log can be that of one connection.
		if err := s.conn.Exec("PRAGMA locking_mode=EXCLUSIVE"); err != nil {
			return s.failure(stepping, err, "")
		}
	}
	first := words(sql, 3)
	s.vacuums = len(first) > 0 && first[0] == "VACUUM"
	defer func() { s.vacuums = false }()
	began := s.Now()
	stmt, _, err := s.conn.Prepare(sql)
	if err != nil {
		return s.failure(inPrepare, err, text)
	}
	if stmt == nil { // a comment
		return nil
	}
	defer stmt.Close()
	if s.plans && (len(first) == 0 || first[0] != "EXPLAIN") {
		if err := s.plan("EXPLAIN QUERY PLAN " + sql); err != nil {
			return err
		}
	}
	if err := s.bind(stmt); err != nil {
		return s.failure(stepping, err, "")
	}
	switch {
	case len(first) == 3 && first[0] == "EXPLAIN" && first[1] == "QUERY" && first[2] == "PLAN":
		err = s.printPlan(stmt)
	default:
		err = s.print(stmt)
	}
	if err == nil {
		err = stmt.Err()
	}
	if err != nil {
		return s.failure(stepping, err, "")
	}
	if s.changes {
		fmt.Fprintf(s.out, "changes: %3d   total_changes: %d\n", s.conn.Changes(), s.conn.TotalChanges())
	}
	s.elapsed(began)
	return nil
}

// ended returns what ends the command: SQLite knows that only as an interrupt or an I/O error.
func (s *session) ended() error {
	if s.files != nil && s.files.ended != nil {
		return s.files.ended
	}
	return s.pulse.Err()
}

// failure makes what a phase of a statement returned what execute returns: what ends the command as it is, anything of
// SQLite's as a *sqlError. text is what the place of a mistake is in.
func (s *session) failure(phase string, err error, text string) error {
	if end := s.ended(); end != nil {
		return end
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return err
	}
	e := &sqlError{phase: phase, code: int(code), text: errorText(err)}
	if e.code > 1 {
		e.text += fmt.Sprintf(" (%d)", e.code)
	}
	var at *sqlite3.Error
	if errors.As(err, &at) && at.SQL() != "" && text != "" {
		e.text += pointer(text, at.SQL())
	}
	return e
}

// errorText returns the message of SQLite's in an error of the library's, which puts that of the code before it.
func errorText(err error) string {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return err.Error()
	}
	general := strings.TrimPrefix(code.Error(), "sqlite3: ")
	if code == sqlite3.CANTOPEN || code == sqlite3.IOERR {
		return general
	}
	text := strings.TrimPrefix(err.Error(), "sqlite3: ")
	if rest, ok := strings.CutPrefix(text, general+": "); ok && code != sqlite3.LOCKED {
		return rest
	}
	return text
}

// pointer shows a place in a statement: that where rest begins.
func pointer(text, rest string) string {
	head, _ := cutAt(text, rest)
	offset := len(head)
	for offset > 50 {
		_, size := utf8.DecodeRuneInString(text)
		text, offset = text[size:], offset-size
	}
	if len(text) > 78 {
		n := 78
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	text = strings.Map(func(r rune) rune {
		if r < 0x80 && isSpace(byte(r)) {
			return ' '
		}
		return r
	}, text)
	if offset < 25 {
		return fmt.Sprintf("\n  %s\n  %*s^--- error here", text, offset, "")
	}
	return fmt.Sprintf("\n  %s\n  %*serror here ---^", text, offset-14, "")
}

// cutAt splits the statement that text begins with where rest, its end, begins.
func cutAt(text, rest string) (before, after string) {
	n, ok := cut(text)
	if !ok {
		n = len(text)
	}
	at := max(n-len(rest), 0)
	return text[:at], text[at:]
}
