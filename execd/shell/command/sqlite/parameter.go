package sqlite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// parameter is a value that .parameter has set.
type parameter struct {
	value value
	shown string // as SQL
}

// bind gives a statement the values that its parameters have.
func (s *session) bind(stmt *sqlite3.Stmt) error {
	for i := 1; i <= stmt.BindCount(); i++ {
		p, ok := s.parameters[stmt.BindName(i)]
		if !ok {
			continue
		}
		if err := p.value.bind(stmt, i); err != nil {
			return err
		}
	}
	return nil
}

// parameterCommand is .parameter.
func (s *session) parameterCommand(args []string) error {
	switch {
	case len(args) == 2 && (args[1] == "init" || args[1] == "clear"):
		clear(s.parameters)
	case len(args) == 2 && args[1] == "list":
		width := 0
		for name := range s.parameters {
			width = max(width, len(name))
		}
		for _, name := range slices.Sorted(maps.Keys(s.parameters)) {
			fmt.Fprintf(s.out, "%-*s %s\n", width, name, s.parameters[name].shown)
		}
	case len(args) == 3 && args[1] == "unset":
		delete(s.parameters, args[2])
	case len(args) == 4 && args[1] == "set":
		v, err := s.evaluate(args[3])
		if err != nil {
			return err
		}
		s.parameters[args[2]] = parameter{v, quoted(v)}
	default:
		return s.usage(".parameter CMD ...")
	}
	return nil
}

// evaluate returns the value of an expression, and text that is none as it is.
func (s *session) evaluate(text string) (value, error) {
	plain := value{kind: sqlite3.TEXT, text: text}
	stmt, _, err := s.conn.Prepare("SELECT " + text)
	if err != nil || stmt == nil {
		return plain, s.ended()
	}
	defer stmt.Close()
	if !stmt.Step() || stmt.ColumnCount() != 1 {
		return plain, s.ended()
	}
	return valueOf(stmt, 0), nil
}
