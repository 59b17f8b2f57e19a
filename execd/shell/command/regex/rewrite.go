package regex

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// rewriter writes a tree in RE2's syntax.
type rewriter struct {
	strings.Builder
	failed bool // something is beyond RE2
	ascii  bool // the result is right for ASCII texts only
}

func (w *rewriter) node(n *node) {
	switch n.op {
	case opEmpty:
		w.WriteString("(?:)")
	case opLiteral:
		w.failed = w.failed || !utf8.ValidString(n.text)
		w.folded(n.fold, regexp.QuoteMeta(n.text))
	case opSet:
		w.folded(n.fold, n.set.rewrite())
	case opAny:
		w.WriteString(choose(n.dotAll, `(?s:.)`, `(?-s:.)`))
	case opConcat:
		w.concat(n)
	case opAlternate:
		for i, sub := range n.subs {
			w.WriteString(choose(i > 0, "|", "(?:"))
			w.node(sub)
		}
		w.WriteString(")")
	case opRepeat:
		w.repeat(n)
	case opGroup:
		w.WriteString(choose(n.index > 0, "(", "(?:"))
		w.node(n.subs[0])
		w.WriteString(")")
	case opBegin:
		w.WriteString(choose(n.multi, `(?m:^)`, `\A`))
	case opEnd:
		w.WriteString(choose(n.multi, `(?m:$)`, `\z`))
	case opTextBegin:
		w.WriteString(`\A`)
	case opTextEnd:
		w.WriteString(`\z`)
	case opWordEdge, opWordInner:
		w.ascii = true
		w.WriteString(choose(n.op == opWordEdge, `\b`, `\B`))
	default:
		w.failed = true
	}
}

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func (w *rewriter) folded(fold bool, text string) {
	if fold {
		text = "(?i:" + text + ")"
	}
	w.WriteString(text)
}

// concat turns \< and \> into \b where a word character is on the right side of them anyway.
func (w *rewriter) concat(n *node) {
	for i, sub := range n.subs {
		switch {
		case sub.op == opWordStart && i+1 < len(n.subs) && n.subs[i+1].edgeIsWord(true),
			sub.op == opWordEnd && i > 0 && n.subs[i-1].edgeIsWord(false):
			w.ascii = true
			w.WriteString(`\b`)
		default:
			w.node(sub)
		}
	}
}

func (w *rewriter) repeat(n *node) {
	const most = 1000 // RE2's own bound
	if n.min > most || n.max > most {
		w.failed = true
		return
	}
	w.WriteString("(?:")
	w.node(n.subs[0])
	w.WriteString(")")
	switch {
	case n.min == 0 && n.max == unlimited:
		w.WriteString("*")
	case n.min == 1 && n.max == unlimited:
		w.WriteString("+")
	case n.min == 0 && n.max == 1:
		w.WriteString("?")
	case n.max == unlimited:
		fmt.Fprintf(w, "{%d,}", n.min)
	default:
		fmt.Fprintf(w, "{%d,%d}", n.min, n.max)
	}
	if n.lazy {
		w.WriteString("?")
	}
}

func (s *set) rewrite() string {
	var b strings.Builder
	b.WriteString(choose(s.negate, "[^", "["))
	for _, r := range s.ranges {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r[0], r[1])
	}
	for _, name := range s.names {
		b.WriteString(name)
	}
	b.WriteString("]")
	return b.String()
}

// edgeIsWord says whether what n matches surely starts (or ends) with a word character.
func (n *node) edgeIsWord(start bool) bool {
	switch n.op {
	case opLiteral:
		c := n.text[len(n.text)-1]
		if start {
			c = n.text[0]
		}
		return c < 0x80 && isWord(rune(c))
	case opSet:
		return n.set.onlyWord()
	case opGroup, opAlternate:
		for _, sub := range n.subs {
			if !sub.edgeIsWord(start) {
				return false
			}
		}
		return true
	case opRepeat:
		return n.min > 0 && n.subs[0].edgeIsWord(start)
	case opConcat:
		if start {
			return n.subs[0].edgeIsWord(start)
		}
		return n.subs[len(n.subs)-1].edgeIsWord(start)
	}
	return false
}

func (s *set) onlyWord() bool {
	for _, r := range s.ranges {
		for c := r[0]; c <= r[1]; c++ {
			if c >= 0x80 || !isWord(c) {
				return false
			}
		}
	}
	for _, name := range s.names {
		if !strings.HasPrefix(name, `\p{L`) && name != `\p{Nd}` {
			return false
		}
	}
	return !s.negate
}

// required returns the longest literal that every match holds, or "": one that is matched in either case when fold.
func (n *node) required(fold bool) string {
	switch n.op {
	case opLiteral:
		if n.fold == fold {
			return n.text
		}
	case opGroup, opAtomic:
		return n.subs[0].required(fold)
	case opRepeat:
		if n.min > 0 {
			return n.subs[0].required(fold)
		}
	case opConcat:
		best, run := "", ""
		for _, sub := range n.subs {
			if sub.op == opLiteral && sub.fold == fold {
				run += sub.text
			} else {
				run = ""
				if r := sub.required(fold); len(r) > len(best) {
					best = r
				}
			}
			if len(run) > len(best) {
				best = run
			}
		}
		return best
	}
	return ""
}

// literal returns the text that n is, when it is nothing but text.
func (n *node) literal() (string, bool) {
	switch n.op {
	case opLiteral:
		return n.text, !n.fold
	case opConcat:
		var b strings.Builder
		for _, sub := range n.subs {
			if sub.op != opLiteral || sub.fold {
				return "", false
			}
			b.WriteString(sub.text)
		}
		return b.String(), true
	}
	return "", false
}

// looksAround says whether what is before the place where a search starts can matter.
func (n *node) looksAround() bool {
	switch n.op {
	case opBegin, opTextBegin, opWordStart, opWordEnd, opWordEdge, opWordInner, opLook:
		return true
	}
	for _, sub := range n.subs {
		if sub.looksAround() {
			return true
		}
	}
	return false
}
