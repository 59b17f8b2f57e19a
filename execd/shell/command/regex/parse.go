package regex

import (
	"strings"
	"unicode/utf8"
)

// syntaxError is what is wrong with an expression, in GNU's words.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

const (
	errBracket      = syntaxError("Unmatched [, [^, [:, [., or [=")
	errParen        = syntaxError("Unmatched ( or \\(")
	errCloseParen   = syntaxError("Unmatched ) or \\)")
	errBrace        = syntaxError("Unmatched \\{")
	errBraceContent = syntaxError("Invalid content of \\{\\}")
	errRange        = syntaxError("Invalid range end")
	errClass        = syntaxError("Invalid character class name")
	errBackref      = syntaxError("Invalid back reference")
	errPreceding    = syntaxError("Invalid preceding regular expression")
	errBackslash    = syntaxError("Trailing backslash")
	errTooBig       = syntaxError("Regular expression too big")
	errDeep         = syntaxError("Regular expression nested too deeply")
)

// parser reads one expression.
type parser struct {
	src     string
	pos     int
	syntax  Syntax
	escapes bool // \n and its like are characters
	base    int  // groups of the expressions before this one
	groups  int  // groups so far, with base
	closed  map[int]bool
	names   map[string]int
	depth   int
	flags   flags
}

// flags are what (?i) and its like change.
type flags struct{ fold, dotAll, multi, extended bool }

func (p *parser) more() bool { return p.pos < len(p.src) }

func (p *parser) peek(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

func (p *parser) accept(s string) bool {
	if p.peek(s) {
		p.pos += len(s)
		return true
	}
	return false
}

// operator says whether the text at pos is the operator c, which basic syntax spells with a backslash.
func (p *parser) operator(c string) bool {
	if p.syntax == Basic {
		return p.peek(`\` + c)
	}
	return p.peek(c)
}

func (p *parser) acceptOperator(c string) bool {
	if p.syntax == Basic {
		return p.accept(`\` + c)
	}
	return p.accept(c)
}

// parse reads the whole expression.
func (p *parser) parse() (*node, error) {
	n, err := p.alternation()
	if err == nil && p.more() {
		return nil, errCloseParen
	}
	return n, err
}

func (p *parser) alternation() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDeep
	}
	defer func() { p.depth-- }()
	first, err := p.sequence()
	if err != nil || !p.operator("|") {
		return first, err
	}
	alt := &node{op: opAlternate, subs: []*node{first}}
	for p.acceptOperator("|") {
		next, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alt.subs = append(alt.subs, next)
	}
	return alt, nil
}

// sequence reads up to the end, a "|" or the end of the group.
func (p *parser) sequence() (*node, error) {
	seq := &node{op: opConcat}
	for p.more() && !p.operator("|") && !p.operator(")") {
		if p.syntax == Perl && p.skipComment() {
			continue
		}
		n, err := p.item(len(seq.subs) == 0)
		if err != nil {
			return nil, err
		}
		if n.op != opEmpty {
			seq.subs = append(seq.subs, n)
		}
	}
	switch len(seq.subs) {
	case 0:
		return &node{op: opEmpty}, nil
	case 1:
		return seq.subs[0], nil
	}
	return seq, nil
}

// skipComment skips what (?x) lets one write between the parts.
func (p *parser) skipComment() bool {
	if !p.flags.extended {
		return false
	}
	switch c := p.src[p.pos]; {
	case c == ' ' || '\t' <= c && c <= '\r':
		p.pos++
	case c == '#':
		i := strings.IndexByte(p.src[p.pos:], '\n')
		if i < 0 {
			i = len(p.src) - p.pos
		}
		p.pos += i
	default:
		return false
	}
	return true
}

// item reads an atom and what repeats it. first says that nothing stands before it in its sequence.
func (p *parser) item(first bool) (*node, error) {
	n, err := p.atom(first)
	if err != nil {
		return nil, err
	}
	if p.syntax == Basic && n.op == opBegin {
		return n, nil // after ^ a star is a star
	}
	for p.more() {
		r, ok, err := p.quantifier()
		if err != nil {
			return nil, err
		}
		if !ok {
			return n, nil
		}
		r.subs = []*node{n}
		n = r
		if p.syntax == Perl {
			n = p.mode(n)
		}
	}
	return n, nil
}

// mode reads Perl's "?" and "+" after a quantifier.
func (p *parser) mode(n *node) *node {
	switch {
	case p.accept("?"):
		n.lazy = true
	case p.accept("+"):
		return &node{op: opAtomic, subs: []*node{n}}
	}
	return n
}

func (p *parser) quantifier() (*node, bool, error) {
	switch {
	case p.accept("*"):
		return &node{op: opRepeat, min: 0, max: unlimited}, true, nil
	case p.acceptOperator("+"):
		return &node{op: opRepeat, min: 1, max: unlimited}, true, nil
	case p.acceptOperator("?"):
		return &node{op: opRepeat, min: 0, max: 1}, true, nil
	case p.operator("{"):
		return p.interval()
	}
	return nil, false, nil
}

// interval reads {m}, {m,}, {,n} and {m,n}. Outside the basic syntax a brace that begins none is a brace.
func (p *parser) interval() (*node, bool, error) {
	start := p.pos
	p.acceptOperator("{")
	n := &node{op: opRepeat}
	lo, hasLo := p.number()
	n.min, n.max = lo, lo
	comma := p.accept(",")
	if comma {
		hi, hasHi := p.number()
		if n.max = hi; !hasHi {
			n.max = unlimited
		}
	}
	switch closed := p.acceptOperator("}"); {
	case closed && (hasLo || comma):
		if n.max != unlimited && n.max < n.min {
			return nil, false, errBraceContent
		}
		if n.min > maxRepeat || n.max > maxRepeat {
			return nil, false, errTooBig
		}
		return n, true, nil
	case p.syntax != Basic:
		p.pos = start
		return nil, false, nil
	case closed || p.more():
		return nil, false, errBraceContent
	}
	return nil, false, errBrace
}

// number reads decimal digits; a value past every limit is maxRepeat+1.
func (p *parser) number() (int, bool) {
	start, n := p.pos, 0
	for p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		n = min(n*10+int(p.src[p.pos]-'0'), maxRepeat+1)
		p.pos++
	}
	return n, p.pos > start
}

func (p *parser) atom(first bool) (*node, error) {
	c := p.src[p.pos]
	switch {
	case p.acceptOperator("("):
		return p.group()
	case c == '\\':
		return p.escape()
	case c == '[':
		return p.bracket()
	case c == '.':
		p.pos++
		return &node{op: opAny, dotAll: p.flags.dotAll}, nil
	case c == '^' && (p.syntax != Basic || first):
		p.pos++
		return &node{op: opBegin, multi: p.flags.multi}, nil
	case c == '$' && (p.syntax != Basic || p.endsSequence()):
		p.pos++
		return &node{op: opEnd, multi: p.flags.multi}, nil
	case p.syntax == Perl && strings.IndexByte("*+?", c) >= 0:
		return nil, errPreceding
	case p.syntax == Extended && strings.IndexByte("*+?", c) >= 0:
		return &node{op: opEmpty}, nil // which is what it repeats
	}
	return p.literal(), nil
}

// endsSequence says whether nothing of this sequence follows the character at pos.
func (p *parser) endsSequence() bool {
	rest := p.src[p.pos+1:]
	return rest == "" || strings.HasPrefix(rest, `\)`) || strings.HasPrefix(rest, `\|`)
}

// literal reads one character. An invalid byte stays the byte it is.
func (p *parser) literal() *node {
	_, size := utf8.DecodeRuneInString(p.src[p.pos:])
	text := p.src[p.pos : p.pos+size]
	p.pos += size
	return &node{op: opLiteral, text: text, fold: p.flags.fold}
}

func (p *parser) char(r rune) *node { return &node{op: opLiteral, text: string(r), fold: p.flags.fold} }

// group reads what follows an opening parenthesis.
func (p *parser) group() (*node, error) {
	if p.syntax == Perl && p.accept("?") {
		return p.special()
	}
	p.groups++
	return p.capture(p.groups)
}

func (p *parser) capture(index int) (*node, error) {
	n, err := p.inside(&node{op: opGroup, index: index})
	p.closed[index] = true
	return n, err
}

// inside reads a group's content into n, and its closing parenthesis.
func (p *parser) inside(n *node) (*node, error) {
	saved := p.flags
	sub, err := p.alternation()
	p.flags = saved
	if err != nil {
		return nil, err
	}
	if !p.acceptOperator(")") {
		return nil, errParen
	}
	n.subs = []*node{sub}
	return n, nil
}

// special reads Perl's (?…) after the question mark.
func (p *parser) special() (*node, error) {
	switch {
	case p.accept(":"):
		return p.inside(&node{op: opGroup})
	case p.accept(">"):
		return p.inside(&node{op: opAtomic})
	case p.accept("="):
		return p.inside(&node{op: opLook})
	case p.accept("!"):
		return p.inside(&node{op: opLook, negate: true})
	case p.accept("<="):
		return p.inside(&node{op: opLook, behind: true})
	case p.accept("<!"):
		return p.inside(&node{op: opLook, behind: true, negate: true})
	case p.accept("P<"), p.accept("<"):
		return p.named(">")
	case p.accept("'"):
		return p.named("'")
	case p.accept("#"):
		i := strings.IndexByte(p.src[p.pos:], ')')
		if i < 0 {
			return nil, errParen
		}
		p.pos += i + 1
		return &node{op: opEmpty}, nil
	}
	return p.setFlags()
}

func (p *parser) named(end string) (*node, error) {
	name, _, ok := strings.Cut(p.src[p.pos:], end)
	if !ok || name == "" {
		return nil, errParen
	}
	p.pos += len(name) + len(end)
	p.groups++
	p.names[name] = p.groups
	return p.capture(p.groups)
}

// setFlags reads (?ims-x) and (?i:…).
func (p *parser) setFlags() (*node, error) {
	saved, on := p.flags, true
	for p.more() {
		c := p.src[p.pos]
		p.pos++
		switch c {
		case '-':
			on = false
		case 'i':
			p.flags.fold = on
		case 'm':
			p.flags.multi = on
		case 's':
			p.flags.dotAll = on
		case 'x':
			p.flags.extended = on
		case ')':
			return &node{op: opEmpty}, nil
		case ':':
			n, err := p.inside(&node{op: opGroup})
			p.flags = saved
			return n, err
		default:
			return nil, syntaxError("unrecognized character after (? or (?-")
		}
	}
	return nil, errParen
}
