package regex

import (
	"strings"
	"unicode/utf8"
)

// bracket reads [...].
func (p *parser) bracket() (*node, error) {
	p.pos++
	s := &set{negate: p.accept("^")}
	for first := true; ; first = false {
		if !p.more() {
			return nil, errBracket
		}
		if !first && p.accept("]") {
			return &node{op: opSet, set: s, fold: p.flags.fold}, nil
		}
		if err := p.element(s); err != nil {
			return nil, err
		}
	}
}

// element adds one character, range or class.
func (p *parser) element(s *set) error {
	if p.accept("[:") {
		name, _, ok := strings.Cut(p.src[p.pos:], ":]")
		if !ok {
			return errBracket
		}
		p.pos += len(name) + 2
		if !s.class(name) {
			return errClass
		}
		return nil
	}
	if p.classEscape(s) {
		return nil
	}
	lo, err := p.endpoint()
	if err != nil {
		return err
	}
	hi := lo
	if p.peek("-") && !p.peek("-]") && p.pos+1 < len(p.src) {
		p.pos++
		if hi, err = p.endpoint(); err != nil {
			return err
		}
	}
	if hi < lo {
		return errRange
	}
	s.add(lo, hi)
	return nil
}

// classEscape reads \w and its like, where a backslash is special between brackets.
func (p *parser) classEscape(s *set) bool {
	if p.syntax != Perl || !p.peek(`\`) || p.pos+1 >= len(p.src) {
		return false
	}
	c := p.src[p.pos+1]
	if c == 'p' || c == 'P' {
		p.pos += 2
		q, ok := p.propertySet()
		if ok && c == 'p' {
			s.table(q.tables[0], q.names[0])
		}
		return ok && c == 'p'
	}
	sub := letterSet(c)
	if sub == nil {
		return false
	}
	p.pos += 2
	if sub.negate {
		sub = sub.complement()
	}
	s.ranges, s.tables, s.names = append(s.ranges, sub.ranges...), append(s.tables, sub.tables...), append(s.names, sub.names...)
	return true
}

// complement returns the ranges of the characters that a set of ASCII ranges lacks. Tables are left out: what they hold
// beyond ASCII counts as outside, as in Perl without Unicode properties.
func (s *set) complement() *set {
	out := &set{}
	for r := rune(0); r < 0x80; r++ {
		if !s.holds(r) {
			out.add(r, r)
		}
	}
	out.add(0x80, utf8.MaxRune)
	return out
}

// endpoint reads one character, also as [.x.] or [=x=].
func (p *parser) endpoint() (rune, error) {
	for _, kind := range []string{".", "="} {
		if p.accept("[" + kind) {
			name, _, ok := strings.Cut(p.src[p.pos:], kind+"]")
			r, size := utf8.DecodeRuneInString(name)
			if !ok || size != len(name) {
				return 0, errBracket
			}
			p.pos += len(name) + 2
			return r, nil
		}
	}
	if p.peek(`\`) && p.pos+1 < len(p.src) && (p.escapes || p.syntax == Awk || p.syntax == Perl) {
		p.pos++
		if p.syntax == Perl && p.accept("b") {
			return '\b', nil
		}
		if p.src[p.pos] != 'c' && p.src[p.pos] != 'd' {
			if r, ok := p.charEscape(); ok {
				return r, nil
			}
		}
		if p.syntax != Awk && p.syntax != Perl {
			return '\\', nil
		}
	}
	r, size := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += size
	return r, nil
}
