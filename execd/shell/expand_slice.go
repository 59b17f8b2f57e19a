package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// slice is ${name:offset:length}: characters of a string, or values of a list.
func (sh *shell) slice(pe *syntax.ParamExp, p parameter) parameter {
	offset := int64(0)
	if pe.Slice.Offset != nil {
		offset = sh.arithExpr(pe.Slice.Offset)
	}
	length, bounded := int64(0), pe.Slice.Length != nil
	if bounded {
		length = sh.arithExpr(pe.Slice.Length)
	}
	if p.list {
		return sh.sliceList(p, offset, length, bounded)
	}
	if len(p.vals) == 0 {
		return p
	}
	s := p.vals[0]
	n := int64(utf8.RuneCountInString(s))
	from, to := offset, n
	if from < 0 {
		from += n
	}
	if from < 0 || from > n {
		p.vals = []string{""}
		return p
	}
	if bounded {
		if to = from + length; length < 0 {
			to = n + length
		}
		if to < from {
			sh.fatalf("%d: substring expression < 0", length)
		}
	}
	p.vals = []string{runesBetween(s, from, min(to, n))}
	return p
}

// runesBetween cuts a string by characters.
func runesBetween(s string, from, to int64) string {
	if len(s) == utf8.RuneCountInString(s) {
		return s[from:to]
	}
	start, i := len(s), int64(0)
	for at := range s {
		if i == from {
			start = at
		}
		if i == to {
			return s[start:at]
		}
		i++
	}
	if from >= i {
		return ""
	}
	return s[start:]
}

// sliceList takes values from an offset on: of an indexed array by subscript, of $@ by number, where 0 is $0.
func (sh *shell) sliceList(p parameter, offset, length int64, bounded bool) parameter {
	if bounded && length < 0 {
		sh.fatalf("%d: substring expression < 0", length)
	}
	vals := p.vals
	switch {
	case p.v == nil && (p.name == "@" || p.name == "*"):
		vals = append([]string{sh.name}, vals...)
		if offset < 0 {
			offset += int64(len(vals))
		}
	case p.v != nil && p.v.attrs&attrIndexed != 0 && p.v.list != nil:
		if offset < 0 {
			offset += p.v.list.max() + 1
		}
		if offset >= 0 {
			vals, offset = p.v.list.from(offset), 0
		}
	case offset < 0:
		offset += int64(len(vals))
	}
	if offset < 0 || offset > int64(len(vals)) {
		p.vals = nil
		return p
	}
	vals = vals[offset:]
	if bounded && length < int64(len(vals)) {
		vals = vals[:length]
	}
	p.vals = vals
	return p
}

func (a *indexed) from(i int64) (values []string) {
	a.m.Ascend(i, func(_ int64, s string) bool {
		values = append(values, s)
		return true
	})
	return values
}

// replaceIn is ${name/pattern/string}.
func (sh *shell) replaceIn(p parameter, r *syntax.Replace, m mode) parameter {
	r = slashPattern(r)
	text := sh.patternOf(r.Orig)
	anchor := byte(0)
	if r.Orig != nil && !r.All && len(r.Orig.Parts) > 0 {
		if lit, ok := r.Orig.Parts[0].(*syntax.Lit); ok && lit.Value != "" && (lit.Value[0] == '#' || lit.Value[0] == '%') {
			anchor, text = lit.Value[0], strings.TrimPrefix(strings.TrimPrefix(text, "\\"), lit.Value[:1])
		}
	}
	pat := sh.compile(text, sh.shopt(optNocasematch))
	with := sh.replacement(r.With, m)
	return sh.each(p, func(s string) string {
		switch {
		case anchor == 0 && text == "":
			return s
		case anchor == '#':
			if n := pat.prefixLen(sh, s, true); n >= 0 {
				return with.apply(s[:n]) + s[n:]
			}
			return s
		case anchor == '%':
			if i := pat.suffixAt(sh, s, true); i >= 0 {
				return s[:i] + with.apply(s[i:])
			}
			return s
		}
		return sh.substituteAll(s, pat, with, r.All)
	})
}

// slashPattern is ${name////string}, whose pattern is a slash: the parser takes it for an empty one.
func slashPattern(r *syntax.Replace) *syntax.Replace {
	if !r.All || r.Orig != nil && len(r.Orig.Parts) > 0 {
		return r
	}
	c := &syntax.Replace{All: true, Orig: &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: "/"}}}, With: r.With}
	if r.With == nil {
		return r
	}
	if len(r.With.Parts) > 0 {
		lit, ok := r.With.Parts[0].(*syntax.Lit)
		if !ok || !strings.HasPrefix(lit.Value, "/") {
			return r
		}
		rest := append([]syntax.WordPart{&syntax.Lit{Value: lit.Value[1:]}}, r.With.Parts[1:]...)
		c.With = &syntax.Word{Parts: rest}
	}
	return c
}

// replacement is the string of ${name/pattern/string}, in which an unquoted & stands for what was matched.
type replacement struct {
	parts []string // around each &
}

func (r replacement) apply(match string) string { return strings.Join(r.parts, match) }

func (sh *shell) replacement(w *syntax.Word, m mode) replacement {
	if w == nil {
		return replacement{[]string{""}}
	}
	mm := mode{noSplit: true, brace: true}
	if m.quotes {
		mm.noTilde = true
	}
	parts := []string{""}
	add := func(s string) { parts[len(parts)-1] += s }
	for _, p := range sh.pieces(nil, w.Parts, mm) {
		if p.kind == boundary {
			add(" ")
			continue
		}
		if p.kind == quoted || !sh.shopt(optPatsub) {
			add(p.text)
			continue
		}
		for i := 0; i < len(p.text); i++ {
			switch c := p.text[i]; {
			case c == '\\' && i+1 < len(p.text) && (p.text[i+1] == '&' || p.text[i+1] == '\\'):
				i++
				add(p.text[i : i+1])
			case c == '&':
				parts = append(parts, "")
			default:
				add(p.text[i : i+1])
			}
		}
	}
	return replacement{parts}
}

// substituteAll replaces the first match, or all.
func (sh *shell) substituteAll(s string, pat *pattern, with replacement, all bool) string {
	var b strings.Builder
	for i := 0; i <= len(s); {
		from, to := pat.search(sh, s, i)
		if from < 0 {
			b.WriteString(s[i:])
			return b.String()
		}
		b.WriteString(s[i:from])
		sh.room(b.Len())
		b.WriteString(with.apply(s[from:to]))
		i = to
		if to == from {
			if from >= len(s) {
				break
			}
			b.WriteByte(s[from])
			i = from + 1
		}
		if !all {
			b.WriteString(s[i:])
			return b.String()
		}
		if i >= len(s) {
			break
		}
	}
	return b.String()
}

// subscript expands what is between the brackets after a name: a key, or the text of an expression.
func (sh *shell) subscript(name string, x syntax.ArithmExpr) string {
	if s, ok := indexLiteral(x); ok && (s == "@" || s == "*") {
		return s
	}
	text := sh.arithText(x)
	if text == "@" || text == "*" {
		if to, _ := sh.deref(ref{name: name}); sh.lookup(to.name) != nil && sh.lookup(to.name).attrs&attrAssoc == 0 {
			return strconv.Quote(text)
		}
	}
	return text
}

// subscriptText expands a subscript that came in a string, such as that of a nameref.
func (sh *shell) subscriptText(name, sub string) string {
	if sub == "@" || sub == "*" || !strings.ContainsAny(sub, "$`'\"\\") {
		return sub
	}
	w, err := parseSubscript(sub)
	if err != nil {
		return sub
	}
	return sh.oneString(w)
}

// indexLiteral returns a subscript that is one literal.
func indexLiteral(x syntax.ArithmExpr) (string, bool) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return "", false
	}
	return literalWord(w)
}

// parseSubscript parses text as one word whatever blanks are in it.
func parseSubscript(text string) (*syntax.Word, error) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	var word *syntax.Word
	for w, err := range p.WordsSeq(strings.NewReader(text)) {
		switch {
		case err != nil:
			return nil, err
		case word == nil:
			word = w
		default:
			word = &syntax.Word{Parts: append(append(word.Parts, &syntax.Lit{Value: " "}), w.Parts...)}
		}
	}
	if word == nil {
		word = &syntax.Word{}
	}
	return word, nil
}
