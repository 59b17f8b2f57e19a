package regex

import "unicode"

// op says what a node is.
type op uint8

const (
	opEmpty     op = iota
	opLiteral      // text
	opSet          // one character of set
	opAny          // one character; not a newline unless dotAll
	opConcat       // subs, one after another
	opAlternate    // one of subs
	opRepeat       // subs[0], min to max times
	opGroup        // subs[0], captured as number index; zero captures nothing
	opBackref      // what group index captured
	opBegin        // ^
	opEnd          // $
	opTextBegin    // \` or \A
	opTextEnd      // \' or \z
	opWordStart    // \<
	opWordEnd      // \>
	opWordEdge     // \b
	opWordInner    // \B
	opLook         // (?=…) and its three brothers
	opAtomic       // (?>…)
	opKeep         // \K: the match begins here
)

// unlimited is a repeat's max without one.
const unlimited = -1

// node is one part of a parsed expression.
type node struct {
	op       op
	text     string
	set      *set
	subs     []*node
	min, max int
	lazy     bool
	fold     bool // letters match in either case
	dotAll   bool // "." matches a newline too
	multi    bool // ^ and $ match at lines
	index    int
	behind   bool // of a look: at what is before
	negate   bool // of a look
}

// set is a set of characters.
type set struct {
	negate bool
	ranges [][2]rune
	tables []*unicode.RangeTable
	names  []string // the tables' names in RE2's syntax
}

func (s *set) add(lo, hi rune) { s.ranges = append(s.ranges, [2]rune{lo, hi}) }

func (s *set) table(t *unicode.RangeTable, name string) {
	s.tables, s.names = append(s.tables, t), append(s.names, name)
}

// has reports whether r is in the set. An invalid byte (r is RuneError of size 1) is only in negated ones.
func (s *set) has(r rune, fold bool) bool {
	in := s.holds(r)
	if !in && fold {
		for f := unicode.SimpleFold(r); f != r && !in; f = unicode.SimpleFold(f) {
			in = s.holds(f)
		}
	}
	return in != s.negate
}

func (s *set) holds(r rune) bool {
	for _, x := range s.ranges {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	return unicode.In(r, s.tables...)
}

// isWord is what \w matches.
func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// class adds a POSIX class by its name, and reports whether there is one of that name.
func (s *set) class(name string) bool {
	switch name {
	case "alpha":
		s.table(unicode.L, `\p{L}`)
	case "digit":
		s.add('0', '9')
	case "alnum":
		s.table(unicode.L, `\p{L}`)
		s.table(unicode.Nd, `\p{Nd}`)
	case "upper":
		s.table(unicode.Lu, `\p{Lu}`)
	case "lower":
		s.table(unicode.Ll, `\p{Ll}`)
	case "space":
		s.space()
	case "blank":
		s.add(' ', ' ')
		s.add('\t', '\t')
	case "punct":
		s.add('!', '/')
		s.add(':', '@')
		s.add('[', '`')
		s.add('{', '~')
		s.table(unicode.P, `\p{P}`)
		s.table(unicode.S, `\p{S}`)
	case "cntrl":
		s.table(unicode.Cc, `\p{Cc}`)
	case "print", "graph":
		s.graph()
		if name == "print" {
			s.add(' ', ' ')
		}
	case "xdigit":
		s.add('0', '9')
		s.add('a', 'f')
		s.add('A', 'F')
	default:
		return false
	}
	return true
}

func (s *set) space() {
	s.add('\t', '\r')
	s.add(' ', ' ')
	s.table(unicode.Z, `\p{Z}`)
}

func (s *set) graph() {
	s.add('!', '~')
	s.table(unicode.L, `\p{L}`)
	s.table(unicode.M, `\p{M}`)
	s.table(unicode.N, `\p{N}`)
	s.table(unicode.P, `\p{P}`)
	s.table(unicode.S, `\p{S}`)
}

func (s *set) word() {
	s.add('_', '_')
	s.table(unicode.L, `\p{L}`)
	s.table(unicode.Nd, `\p{Nd}`)
}

// letterSet returns the set of \w, \s, \d, \h and, negated, of their capitals; nil for any other letter.
func letterSet(c byte) *set {
	s := &set{negate: c < 'a'}
	switch c | 0x20 {
	case 'w':
		s.word()
	case 's':
		s.space()
	case 'd':
		s.add('0', '9')
	case 'h':
		s.class("blank")
	default:
		return nil
	}
	return s
}
