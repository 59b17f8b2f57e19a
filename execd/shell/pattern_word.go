package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func sortInts(p []int) { slices.Sort(p) }

// patternOf expands a word to a pattern, in which what was quoted is behind backslashes.
func (sh *shell) patternOf(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return patternText(sh.pieces(nil, w.Parts, mode{noSplit: true, brace: true}))
}

// patternText makes a pattern of pieces.
func patternText(pieces []piece) string {
	if len(pieces) == 1 && (pieces[0].kind == literal || pieces[0].kind == expanded) {
		return pieces[0].text
	}
	var b strings.Builder
	for _, p := range pieces {
		switch p.kind {
		case boundary:
			b.WriteByte(' ')
		case quoted:
			escapePattern(&b, p.text)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func escapePattern(b *strings.Builder, s string) {
	for i := range len(s) {
		if strings.IndexByte(`*?[]\|()!+@-^&/`, s[i]) >= 0 && s[i] != '/' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
}

// compile returns the compiled pattern; recent ones are kept.
func (sh *shell) compile(text string, fold bool) *pattern {
	return sh.cache.pattern(text, fold)
}

// matches reports whether a pattern matches all of s.
func (sh *shell) matches(pat, s string, fold bool) bool {
	sh.work(len(s))
	return sh.compile(pat, fold).match(sh, s)
}

// extGlobPieces expands the inside of an extended pattern. The parser leaves it as text: what is quoted or to be
// expanded in it is found here, and the rest is a pattern's own.
func (sh *shell) extGlobPieces(out []piece, g *syntax.ExtGlob) []piece {
	out = append(out, piece{g.Op.String(), literal})
	for _, seg := range sh.cache.extGlob(g) {
		if seg.word == nil {
			out = append(out, piece{seg.text, literal})
			continue
		}
		for _, p := range sh.pieces(nil, seg.word.Parts, mode{noSplit: true, noTilde: true}) {
			if p.kind == expanded {
				p.kind = literal
			}
			out = append(out, p)
		}
	}
	return append(out, piece{")", literal})
}

// globSegment is a piece of an extended pattern's inside: structure as text, or a word.
type globSegment struct {
	text string
	word *syntax.Word
}

// cutExtGlob cuts the inside of an extended pattern at | ( and ) that nothing quotes.
func cutExtGlob(text string) []globSegment {
	var out []globSegment
	from := 0
	word := func(to int) {
		if from < to {
			w, err := parseSubscript(protectBlanks(text[from:to]))
			if err != nil {
				out = append(out, globSegment{text: text[from:to]})
				return
			}
			out = append(out, globSegment{word: w})
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
		case '\'', '"', '`':
			if end := closing(text[i+1:], c); end >= 0 {
				i += 1 + end
			}
		case '$':
			i += dollarLength(text[i:]) - 1
		case '|', '(', ')':
			word(i)
			out = append(out, globSegment{text: string(c)})
			from = i + 1
		}
	}
	word(len(text))
	return out
}

// closing finds the quote that ends a quoted text.
func closing(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && quote != '\'' {
			i++
		} else if text[i] == quote {
			return i
		}
	}
	return -1
}

// dollarLength is how long an expansion at the start of text is.
func dollarLength(text string) int {
	if len(text) < 2 {
		return 1
	}
	open, shut := text[1], byte(0)
	switch open {
	case '(':
		shut = ')'
	case '{':
		shut = '}'
	default:
		return 1
	}
	depth := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 1
}

// protectBlanks quotes the blanks and operators of a word that only the shell's grammar would take for its end.
func protectBlanks(text string) string {
	if !strings.ContainsAny(text, " \t\n;&<>#") || strings.ContainsAny(text, "'\"`$") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			b.WriteByte('\\')
			i++
		} else if strings.IndexByte(" \t\n;&<>#", text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
