package sed

import (
	"bytes"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// pattern returns the expression that p stands for, and remembers it for the next empty one.
func (m *machine) pattern(p *pattern) (*regex.Regexp, error) {
	if p.empty {
		if m.last == nil {
			return nil, errors.New("no previous regular expression")
		}
		return m.last.re, nil
	}
	m.last = p
	return p.re, nil
}

func (m *machine) substitute(s *substitution) error {
	re, err := m.pattern(s.re)
	if err != nil {
		return err
	}
	done := false
	if text := re.Literal(); text != nil && s.plain() {
		if done, err = m.replaceLiteral(s, text); err != nil {
			return err
		}
	} else if done, err = m.replaceMatches(s, re); err != nil {
		return err
	}
	if !done {
		return nil
	}
	m.changed = true
	m.space, m.buf = m.buf, m.space
	if s.print > 0 {
		if err := m.out.line(m.space, true); err != nil {
			return err
		}
	}
	if s.sink != nil {
		if err := s.sink.line(m.space, true); err != nil {
			return err
		}
	}
	return m.charge()
}

// plain says whether the replacement is text alone.
func (s *substitution) plain() bool {
	return len(s.parts) == 0 || len(s.parts) == 1 && s.parts[0].group < 0 && s.parts[0].mode == 0
}

// replaceLiteral puts the new line into buf, and reports whether it is another one.
func (m *machine) replaceLiteral(s *substitution, text []byte) (bool, error) {
	var with []byte
	if len(s.parts) > 0 {
		with = s.parts[0].text
	}
	rest, out, seen, done := m.space, m.buf[:0], 0, false
	counted := int64(0)
	defer func() { _ = m.Take(-counted) }() // who has called counts the text as a whole
	for {
		i := bytes.Index(rest, text)
		if i < 0 {
			break
		}
		if seen&1023 == 1023 {
			if err := m.Step(m.ctx, 16); err != nil {
				return false, err
			}
		}
		if int64(len(out)) > counted+growth {
			counted += growth
			if err := m.Take(growth); err != nil {
				return false, err
			}
		}
		out = append(out, rest[:i]...)
		if seen++; seen >= s.nth && (s.global || !done) {
			out, done = append(out, with...), true
		} else {
			out = append(out, text...)
		}
		rest = rest[i+len(text):]
		if done && !s.global {
			break
		}
	}
	m.buf = append(out, rest...)
	return done, nil
}

func (m *machine) replaceMatches(s *substitution, re *regex.Regexp) (bool, error) {
	if !s.global && s.nth == 1 {
		loc, err := re.Find(m.space)
		if err != nil || loc == nil {
			return false, err
		}
		out := append(m.buf[:0], m.space[:loc[0]]...)
		m.buf = append(m.expand(out, s, loc), m.space[loc[1]:]...)
		return true, nil
	}
	if len(m.space) >= manyMatches {
		return m.replaceEach(s, re)
	}
	n := s.nth
	if s.global {
		n = -1
	}
	all, err := re.FindAll(m.space, n)
	if err != nil || len(all) < s.nth {
		return false, err
	}
	out, at := m.buf[:0], 0
	for i, loc := range all {
		if i+1 < s.nth {
			continue
		}
		out = append(out, m.space[at:loc[0]]...)
		out = m.expand(out, s, loc)
		at = loc[1]
	}
	m.buf = append(out, m.space[at:]...)
	return true, nil
}

// manyMatches is how long a text is whose matches are not held all at once, and growth how much of what replaces it is
// counted at once.
const (
	manyMatches = 64 << 10
	growth      = 1 << 20
)

var errDone = errors.New("done")

// replaceEach is replaceMatches for a long text: match by match, with what comes of it counted while it grows.
func (m *machine) replaceEach(s *substitution, re *regex.Regexp) (bool, error) {
	out, at, n, counted := m.buf[:0], 0, 0, int64(0)
	err := re.Each(m.space, func(loc []int) error {
		if n++; n < s.nth {
			return nil
		}
		out = append(out, m.space[at:loc[0]]...)
		out = m.expand(out, s, loc)
		at = loc[1]
		if !s.global {
			return errDone
		}
		if int64(len(out)) <= counted {
			return nil
		}
		counted += growth
		return m.Take(growth)
	})
	_ = m.Take(-counted) // who has called counts the text as a whole
	m.buf = append(out, m.space[at:]...)
	if err != nil && !errors.Is(err, errDone) {
		return false, err
	}
	return n >= s.nth, nil
}

// expand appends the replacement for one match.
func (m *machine) expand(out []byte, s *substitution, loc []int) []byte {
	var c casing
	for _, p := range s.parts {
		switch {
		case p.mode != 0:
			c.set(p.mode)
		case p.group < 0:
			out = c.append(out, p.text)
		case 2*p.group+1 < len(loc) && loc[2*p.group] >= 0:
			out = c.append(out, m.space[loc[2*p.group]:loc[2*p.group+1]])
		}
	}
	return out
}

// casing is the change of case that is in force within a replacement.
type casing struct {
	all byte // U, L or 0
	one byte // u, l or 0, for the next character
}

func (c *casing) set(mode byte) {
	switch mode {
	case 'E':
		c.all, c.one = 0, 0
	case 'U', 'L':
		c.all = mode
	default:
		c.one = mode
	}
}

func (c *casing) append(out, text []byte) []byte {
	if c.all == 0 && c.one == 0 || len(text) == 0 {
		return append(out, text...)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		mode := c.all
		if c.one != 0 {
			mode, c.one = c.one, 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, text[0])
		case mode|0x20 == 'u':
			out = utf8.AppendRune(out, unicode.ToUpper(r))
		case mode|0x20 == 'l':
			out = utf8.AppendRune(out, unicode.ToLower(r))
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}
