package sqlite

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// addFunctions adds the functions of the real shell's, and puts others in the place of those of SQLite's that take time in
// the product of the lengths of what they get: nothing can stop them.
func (s *session) addFunctions(conn *sqlite3.Conn) error {
	const pure = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	like := func(c sqlite3.Context, args ...sqlite3.Value) {
		s.matchFunction(c, wildcards{any: '%', one: '_', fold: true}, args)
	}
	trim := func(left, right bool) sqlite3.ScalarFunction {
		return func(c sqlite3.Context, args ...sqlite3.Value) { trimFunction(c, left, right, args) }
	}
	return errors.Join(
		conn.CreateFunction("like", 2, pure, like),
		conn.CreateFunction("like", 3, pure, like),
		conn.CreateFunction("glob", 2, pure, func(c sqlite3.Context, args ...sqlite3.Value) {
			s.matchFunction(c, wildcards{any: '*', one: '?', sets: true}, args)
		}),
		conn.CreateFunction("instr", 2, pure, instrFunction),
		conn.CreateFunction("replace", 3, pure, replaceFunction),
		conn.CreateFunction("trim", 2, pure, trim(true, true)),
		conn.CreateFunction("ltrim", 2, pure, trim(true, false)),
		conn.CreateFunction("rtrim", 2, pure, trim(false, true)),
		conn.CreateFunction("readfile", 1, sqlite3.DIRECTONLY, s.readFileFunction),
		conn.CreateFunction("writefile", 2, sqlite3.DIRECTONLY, s.writeFileFunction),
	)
}

func anyNull(args []sqlite3.Value) bool {
	for _, a := range args {
		if a.Type() == sqlite3.NULL {
			return true
		}
	}
	return false
}

// matchFunction is LIKE and GLOB: the pattern comes first.
func (s *session) matchFunction(c sqlite3.Context, w wildcards, args []sqlite3.Value) {
	if anyNull(args) {
		return
	}
	if args[0].Type() == sqlite3.BLOB || args[1].Type() == sqlite3.BLOB {
		c.ResultBool(false)
		return
	}
	if len(args) == 3 {
		escape := args[2].Text()
		if utf8.RuneCountInString(escape) != 1 {
			c.ResultError(errors.New("ESCAPE expression must be a single character"))
			return
		}
		w.escape, _ = utf8.DecodeRuneInString(escape)
	}
	ok, err := w.match(args[0].Text(), args[1].Text(), s.pulse.Err)
	if err != nil {
		c.ResultError(sqlite3.INTERRUPT)
		return
	}
	c.ResultBool(ok)
}

func instrFunction(c sqlite3.Context, args ...sqlite3.Value) {
	switch {
	case anyNull(args):
	case args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB:
		c.ResultInt(strings.Index(string(args[0].RawBlob()), string(args[1].RawBlob())) + 1)
	default:
		text := args[0].Text()
		at := strings.Index(text, args[1].Text())
		if at >= 0 {
			at = utf8.RuneCountInString(text[:at])
		}
		c.ResultInt(at + 1)
	}
}

func replaceFunction(c sqlite3.Context, args ...sqlite3.Value) {
	if anyNull(args) {
		return
	}
	text, old, with := args[0].Text(), args[1].Text(), args[2].Text()
	if old == "" {
		c.ResultText(text)
		return
	}
	if grown := len(text) + strings.Count(text, old)*(len(with)-len(old)); grown > maxValue {
		c.ResultError(sqlite3.TOOBIG)
		return
	}
	c.ResultText(strings.ReplaceAll(text, old, with))
}

func trimFunction(c sqlite3.Context, left, right bool, args []sqlite3.Value) {
	if anyNull(args) {
		return
	}
	text, set := args[0].Text(), map[rune]bool{}
	for _, r := range args[1].Text() {
		set[r] = true
	}
	if left {
		text = strings.TrimLeftFunc(text, func(r rune) bool { return set[r] })
	}
	if right {
		text = strings.TrimRightFunc(text, func(r rune) bool { return set[r] })
	}
	c.ResultText(text)
}

// readFileFunction gives a file's bytes, NULL where it cannot be read.
func (s *session) readFileFunction(c sqlite3.Context, args ...sqlite3.Value) {
	data, err := s.FS.ReadFile(s.ctx, args[0].Text(), maxValue)
	if err == nil {
		c.ResultBlob(data)
	}
}

// writeFileFunction makes a file of a value and gives its length, NULL where it cannot be written.
func (s *session) writeFileFunction(c sqlite3.Context, args ...sqlite3.Value) {
	data := args[1].Blob(nil)
	f, err := s.FS.OpenFile(s.ctx, args[0].Text(), treepath.Write|treepath.Create|treepath.Truncate, 0o666)
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if errors.Join(err, f.Close()) == nil {
		c.ResultInt(len(data))
	}
}

// wildcards are those of LIKE or GLOB.
type wildcards struct {
	any, one   rune
	escape     rune // 0 for none
	fold, sets bool
}

// patience is how many characters are compared between two questions whether to go on.
const patience = 1 << 14

// match says whether text as a whole fits a pattern. It asks now and then whether to go on.
func (w wildcards) match(pattern, text string, stop func() error) (bool, error) {
	star, mark := -1, 0 // what follows the last wildcard for many, and where that was tried
	i, j := 0, 0
	for n := 1; ; n++ {
		if n%patience == 0 {
			if err := stop(); err != nil {
				return false, err
			}
		}
		if i < len(pattern) {
			p, size := utf8.DecodeRuneInString(pattern[i:])
			if p == w.any && p != w.escape {
				i += size
				star, mark = i, j
				continue
			}
			if j < len(text) {
				if next, width, ok := w.single(pattern[i:], text[j:]); ok {
					i, j = i+next, j+width
					continue
				}
			}
		} else if j == len(text) {
			return true, nil
		}
		if star < 0 || mark >= len(text) {
			return false, nil
		}
		_, size := utf8.DecodeRuneInString(text[mark:])
		mark += size
		i, j = star, mark
	}
}

// single matches one character of text, and returns how much of both that takes.
func (w wildcards) single(pattern, text string) (taken, width int, ok bool) {
	p, size := utf8.DecodeRuneInString(pattern)
	t, width := utf8.DecodeRuneInString(text)
	switch {
	case p == w.escape && w.escape != 0:
		if size == len(pattern) {
			return 0, 0, false
		}
		q, more := utf8.DecodeRuneInString(pattern[size:])
		return size + more, width, w.same(q, t)
	case p == w.one:
		return size, width, true
	case p == '[' && w.sets:
		taken, ok = inSet(pattern, t)
		return taken, width, ok
	}
	return size, width, w.same(p, t)
}

func (w wildcards) same(a, b rune) bool {
	return a == b || w.fold && a < 0x80 && b < 0x80 && lower(a) == lower(b)
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// inSet says whether r is in the set that a pattern of GLOB begins with, and how long that is. One without an end fits
// nothing.
func inSet(pattern string, r rune) (size int, ok bool) {
	i := 1
	invert := strings.HasPrefix(pattern[i:], "^")
	if invert {
		i++
	}
	found := false
	last := rune(-1)
	for first := true; i < len(pattern); first = false {
		c, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		switch {
		case c == ']' && !first:
			return i, found != invert
		case c == '-' && last >= 0 && i < len(pattern) && pattern[i] != ']':
			high, n := utf8.DecodeRuneInString(pattern[i:])
			i += n
			found = found || last <= r && r <= high
			last = -1
		default:
			found = found || c == r
			last = c
		}
	}
	return 0, false
}
