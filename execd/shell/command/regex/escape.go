package regex

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// escape reads what a backslash begins.
func (p *parser) escape() (*node, error) {
	p.pos++
	if !p.more() {
		return nil, errBackslash
	}
	c := p.src[p.pos]
	if c >= '1' && c <= '9' && p.syntax != Awk {
		return p.backref()
	}
	if n := p.assertion(c); n != nil {
		p.pos++
		return n, nil
	}
	if strings.IndexByte("wWsS", c) >= 0 || p.syntax == Perl && strings.IndexByte("dDhH", c) >= 0 {
		p.pos++
		return &node{op: opSet, set: letterSet(c)}, nil
	}
	if p.syntax == Perl {
		if n, done, err := p.perlEscape(c); done {
			return n, err
		}
	}
	if p.escapes || p.syntax == Awk || p.syntax == Perl {
		if r, ok := p.charEscape(); ok {
			return p.char(r), nil
		}
	}
	return p.literal(), nil
}

// assertion returns the node of an escape that matches a place.
func (p *parser) assertion(c byte) *node {
	switch {
	case c == '<' && p.syntax != Perl:
		return &node{op: opWordStart}
	case c == '>' && p.syntax != Perl:
		return &node{op: opWordEnd}
	case c == 'b' && p.syntax != Awk, c == 'y' && p.syntax == Awk:
		return &node{op: opWordEdge}
	case c == 'B':
		return &node{op: opWordInner}
	case c == '`', c == 'A' && p.syntax == Perl:
		return &node{op: opTextBegin}
	case c == '\'', (c == 'z' || c == 'Z') && p.syntax == Perl:
		return &node{op: opTextEnd}
	case c == 'K' && p.syntax == Perl:
		return &node{op: opKeep}
	}
	return nil
}

func (p *parser) backref() (*node, error) {
	n := int(p.src[p.pos] - '0')
	p.pos++
	for p.syntax == Perl && p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' && n*10 <= p.groups {
		n = n*10 + int(p.src[p.pos]-'0')
		p.pos++
	}
	return p.refer(p.base + n)
}

func (p *parser) refer(index int) (*node, error) {
	if !p.closed[index] {
		return nil, errBackref
	}
	return &node{op: opBackref, index: index, fold: p.flags.fold}, nil
}

// perlEscape reads the escapes that only Perl has; done says that c was one.
func (p *parser) perlEscape(c byte) (n *node, done bool, err error) {
	switch c {
	case 'p', 'P':
		n, err = p.property(c == 'P')
		return n, true, err
	case 'k', 'g':
		n, err = p.namedBackref()
		return n, true, err
	case 'Q':
		p.unquote()
		if !p.more() {
			return &node{op: opEmpty}, true, nil
		}
		n, err = p.atom(false)
		return n, true, err
	case 'N':
		p.pos++
		return &node{op: opAny}, true, nil
	case 'R':
		p.pos++
		s := &set{}
		s.add('\n', '\r')
		return &node{op: opSet, set: s}, true, nil
	}
	return nil, false, nil
}

// property reads \p{Name} and \pN.
func (p *parser) property(negate bool) (*node, error) {
	p.pos++
	s, ok := p.propertySet()
	if !ok {
		return nil, errClass
	}
	s.negate = negate
	return &node{op: opSet, set: s}, nil
}

func (p *parser) propertySet() (*set, bool) {
	if !p.more() {
		return nil, false
	}
	name := p.src[p.pos : p.pos+1]
	p.pos++
	if name == "{" {
		var ok bool
		if name, _, ok = strings.Cut(p.src[p.pos:], "}"); !ok {
			return nil, false
		}
		p.pos += len(name) + 1
	}
	t := unicode.Categories[name]
	if t == nil {
		t = unicode.Scripts[name]
	}
	s := &set{}
	s.table(t, `\p{`+name+`}`)
	return s, t != nil
}

// namedBackref reads \k<name>, \k{name}, \k'name', \g{n} and \gn.
func (p *parser) namedBackref() (*node, error) {
	p.pos++
	if !p.more() {
		return nil, errBackref
	}
	closing := map[byte]string{'<': ">", '{': "}", '\'': "'"}[p.src[p.pos]]
	if closing == "" {
		n, _ := p.number()
		return p.refer(p.base + n)
	}
	name, _, ok := strings.Cut(p.src[p.pos+1:], closing)
	if !ok {
		return nil, errBackref
	}
	p.pos += len(name) + 2
	if n, err := strconv.Atoi(name); err == nil {
		return p.refer(p.base + n)
	}
	return p.refer(p.names[name])
}

// charEscape reads the name of one character.
func (p *parser) charEscape() (rune, bool) {
	const names, values = "abefnrtv", "\a\b\x1b\f\n\r\t\v"
	c := p.src[p.pos]
	if i := strings.IndexByte(names, c); i >= 0 && (c != 'b' || p.syntax == Awk) {
		p.pos++
		return rune(values[i]), true
	}
	switch {
	case c == 'x':
		return p.hex()
	case c == 'o' && p.syntax == Basic, c == 'o' && p.syntax == Extended:
		return p.digits(1, 3, 8)
	case c == 'd' && p.syntax != Awk:
		return p.digits(1, 3, 10)
	case c == '0' && p.syntax == Perl, c >= '0' && c <= '7' && p.syntax == Awk:
		return p.digits(0, 3, 8)
	case c == 'c' && p.pos+1 < len(p.src):
		r := rune(p.src[p.pos+1]&^0x20) ^ 0x40
		p.pos += 2
		return r, true
	}
	return 0, false
}

func (p *parser) hex() (rune, bool) {
	if p.syntax == Perl && p.pos+1 < len(p.src) && p.src[p.pos+1] == '{' {
		digits, _, ok := strings.Cut(p.src[p.pos+2:], "}")
		n, err := strconv.ParseInt(digits, 16, 32)
		if !ok || err != nil {
			return 0, false
		}
		p.pos += len(digits) + 3
		return rune(n), true
	}
	return p.digits(1, 2, 16)
}

// digits reads up to most digits, skip bytes after pos; it moves only when there is one.
func (p *parser) digits(skip, most, base int) (rune, bool) {
	start := p.pos + skip
	end := start
	for end < len(p.src) && end-start < most {
		if _, err := strconv.ParseUint(p.src[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint(p.src[start:end], base, 16)
	if err != nil {
		return 0, false
	}
	p.pos = end
	return rune(n), true
}

// unquote puts what stands between \Q and \E in their place, escaped.
func (p *parser) unquote() {
	text, rest, _ := strings.Cut(p.src[p.pos+1:], `\E`)
	p.pos--
	p.src = p.src[:p.pos] + regexp.QuoteMeta(text) + rest
}
