package regex

import (
	"errors"
	"unicode"
	"unicode/utf8"
)

// ErrCost says that a search on the backtracking machine took more steps, or went deeper, than it may.
var ErrCost = errors.New("exceeded the limit of backtracking")

// step goes on with a match from a position, and reports whether the rest of the expression matched.
type step func(m *machine, pos int) bool

// machine is one search.
type machine struct {
	text   []byte
	caps   []int // as regexp's: pairs, -1 where a group took no part
	starts []int // of open groups
	loops  []loop
	keep   int // where \K put the beginning, or -1
	end    int // where the innermost accept was
	behind int // where the innermost look-behind ends
	steps  int
	asked  int // steps when the count was told last
	depth  int
	count  func(n int) error
	err    error
}

// loop is the state of a repeat.
type loop struct{ count, start int }

// program is an expression for the machine.
type program struct {
	run    step
	groups int
	loops  int
}

func accept(m *machine, pos int) bool {
	m.end = pos
	return true
}

func assemble(n *node, groups int) *program {
	p := &program{groups: groups}
	p.run = p.compile(n, accept)
	return p
}

// tick counts a step; false ends the search.
func (m *machine) tick() bool { return m.ticks(1) }

// ticks counts n steps.
func (m *machine) ticks(n int) bool {
	if m.steps += n; m.steps-m.asked >= stepBatch && m.err == nil {
		if m.count != nil {
			m.err = m.count(m.steps - m.asked)
		} else if m.steps > maxSteps {
			m.err = ErrCost
		}
		m.asked = m.steps
	}
	return m.err == nil
}

// find returns the first match at or after from.
func (p *program) find(text []byte, from int, count func(int) error) ([]int, error) {
	m := &machine{
		text: text, count: count,
		caps: make([]int, 2*(p.groups+1)), starts: make([]int, p.groups+1), loops: make([]loop, p.loops),
	}
	for pos := from; pos <= len(text); {
		for i := range m.caps {
			m.caps[i] = -1
		}
		m.keep, m.depth = -1, 0
		if p.run(m, pos) {
			m.caps[0], m.caps[1] = pos, m.end
			if m.keep >= 0 {
				m.caps[0] = m.keep
			}
			return m.caps, nil
		}
		if !m.tick() {
			return nil, m.err
		}
		_, size := utf8.DecodeRune(text[pos:])
		pos += max(size, 1)
	}
	return nil, nil
}

// compile returns the step that matches n and goes on with next.
func (p *program) compile(n *node, next step) step {
	if one := n.single(); one != nil {
		return func(m *machine, pos int) bool {
			size := one(m, pos)
			return size >= 0 && m.tick() && next(m, pos+size)
		}
	}
	switch n.op {
	case opConcat:
		for i := len(n.subs) - 1; i >= 0; i-- {
			next = p.compile(n.subs[i], next)
		}
		return next
	case opAlternate:
		return p.alternate(n, next)
	case opRepeat:
		return p.repeat(n, next)
	case opGroup:
		return p.group(n, next)
	case opBackref:
		return backref(n, next)
	case opLook:
		return p.look(n, next)
	case opAtomic:
		sub := p.compile(n.subs[0], accept)
		return func(m *machine, pos int) bool { return sub(m, pos) && next(m, m.end) }
	case opKeep:
		return func(m *machine, pos int) bool {
			old := m.keep
			m.keep = pos
			if next(m, pos) {
				return true
			}
			m.keep = old
			return false
		}
	case opEmpty:
		return next
	}
	return func(m *machine, pos int) bool { return m.at(n, pos) && next(m, pos) }
}

// at says whether an assertion holds at pos.
func (m *machine) at(n *node, pos int) bool {
	switch n.op {
	case opBegin:
		return pos == 0 || n.multi && m.text[pos-1] == '\n'
	case opEnd:
		return pos == len(m.text) || n.multi && m.text[pos] == '\n'
	case opTextBegin:
		return pos == 0
	case opTextEnd:
		return pos == len(m.text)
	}
	before, _ := utf8.DecodeLastRune(m.text[:pos])
	after, _ := utf8.DecodeRune(m.text[pos:])
	wordBefore, wordAfter := pos > 0 && isWord(before), pos < len(m.text) && isWord(after)
	switch n.op {
	case opWordStart:
		return !wordBefore && wordAfter
	case opWordEnd:
		return wordBefore && !wordAfter
	case opWordEdge:
		return wordBefore != wordAfter
	}
	return wordBefore == wordAfter // opWordInner
}

// single returns, for a node that matches without choice, how many bytes it takes at a position, or -1.
func (n *node) single() func(m *machine, pos int) int {
	switch n.op {
	case opLiteral:
		return func(m *machine, pos int) int { return prefix(m.text[pos:], n.text, n.fold) }
	case opSet:
		return func(m *machine, pos int) int {
			r, size := utf8.DecodeRune(m.text[pos:])
			if size == 0 || !n.set.has(r, n.fold) {
				return -1
			}
			return size
		}
	case opAny:
		return func(m *machine, pos int) int {
			r, size := utf8.DecodeRune(m.text[pos:])
			if size == 0 || r == '\n' && !n.dotAll {
				return -1
			}
			return size
		}
	}
	return nil
}

// prefix returns how many bytes of text the beginning takes that is want, or -1.
func prefix(text []byte, want string, fold bool) int {
	if !fold {
		if len(text) >= len(want) && string(text[:len(want)]) == want {
			return len(want)
		}
		return -1
	}
	pos := 0
	for _, w := range want {
		r, size := utf8.DecodeRune(text[pos:])
		if size == 0 || r != w && !foldsTo(r, w) {
			return -1
		}
		pos += size
	}
	return pos
}

func foldsTo(r, w rune) bool {
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f == w {
			return true
		}
	}
	return false
}

func (p *program) alternate(n *node, next step) step {
	ways := make([]step, len(n.subs))
	for i, sub := range n.subs {
		ways[i] = p.compile(sub, next)
	}
	return func(m *machine, pos int) bool {
		for _, way := range ways {
			if !m.tick() {
				return false
			}
			if way(m, pos) {
				return true
			}
		}
		return false
	}
}

func (p *program) group(n *node, next step) step {
	if n.index == 0 {
		return p.compile(n.subs[0], next)
	}
	i := n.index
	body := p.compile(n.subs[0], func(m *machine, pos int) bool {
		lo, hi := m.caps[2*i], m.caps[2*i+1]
		m.caps[2*i], m.caps[2*i+1] = m.starts[i], pos
		if next(m, pos) {
			return true
		}
		m.caps[2*i], m.caps[2*i+1] = lo, hi
		return false
	})
	return func(m *machine, pos int) bool {
		old := m.starts[i]
		m.starts[i] = pos
		if body(m, pos) {
			return true
		}
		m.starts[i] = old
		return false
	}
}

func backref(n *node, next step) step {
	return func(m *machine, pos int) bool {
		lo, hi := m.caps[2*n.index], m.caps[2*n.index+1]
		if lo < 0 || !m.ticks(1+(hi-lo)>>5) { // bytes are compared many at once
			return false
		}
		size := prefix(m.text[pos:], string(m.text[lo:hi]), n.fold)
		return size >= 0 && next(m, pos+size)
	}
}

func (p *program) look(n *node, next step) step {
	if n.behind {
		return p.lookBehind(n, next)
	}
	sub := p.compile(n.subs[0], accept)
	return func(m *machine, pos int) bool { return sub(m, pos) != n.negate && m.err == nil && next(m, pos) }
}

// lookBehind tries every start before pos, the nearest first.
func (p *program) lookBehind(n *node, next step) step {
	sub := p.compile(n.subs[0], func(m *machine, pos int) bool { return pos == m.behind })
	return func(m *machine, pos int) bool {
		found, saved := false, m.behind
		m.behind = pos
		for start := pos; start >= 0 && !found && m.tick(); start-- {
			found = sub(m, start)
		}
		m.behind = saved
		return found != n.negate && m.err == nil && next(m, pos)
	}
}
