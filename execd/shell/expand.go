package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is expanded in steps that hand on pieces: what its parts have become, and how each may still be treated. Then
// the pieces are split into fields and the fields that are patterns become the names that they match.

// kind says what may still be done with a piece.
type kind uint8

const (
	quoted   kind = iota // nothing
	literal              // it may be a pattern
	expanded             // it may be split, and be a pattern
	boundary             // here one field ends and another begins; no text
)

type piece struct {
	text string
	kind kind
}

// mode says where a word stands.
type mode struct {
	quotes   bool // inside double quotes, or a here-document
	here     bool // inside a here-document: \" is two characters
	assign   bool // the value of an assignment: a tilde may follow a colon
	noSplit  bool // one string is wanted
	split    bool // literal text may be split: the word of ${x-word}
	noTilde  bool // not at a word's start
	argument bool // a command's argument, in which a tilde may follow name=
	brace    bool // inside ${ }: \} is a brace
}

// fields expands words as a command's are.
func (sh *shell) fields(words []*syntax.Word) []string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		if s, ok := plainWord(w); ok {
			out = append(out, s)
			continue
		}
		out = sh.wordFields(out, w)
	}
	return out
}

// plainWord returns a word that means itself.
func plainWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if !strings.ContainsAny(p.Value, "\\*?[{~=") {
			return p.Value, true
		}
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value, true
		}
	}
	return "", false
}

func (sh *shell) wordFields(out []string, w *syntax.Word) []string {
	m := mode{argument: true}
	for _, parts := range sh.braces(w.Parts) {
		pieces := sh.pieces(nil, parts, m)
		for _, f := range sh.split(pieces) {
			out = sh.fieldNames(out, f)
		}
	}
	return out
}

// assignable expands a word to one string: no splitting, no patterns, no braces. Values of assignments, words of case
// and here-strings are such.
func (sh *shell) assignable(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if s, ok := plainWord(w); ok {
		return s
	}
	return sh.join(sh.pieces(nil, w.Parts, mode{assign: true, noSplit: true}))
}

// oneString is assignable without tildes behind colons.
func (sh *shell) oneString(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return sh.join(sh.pieces(nil, w.Parts, mode{noSplit: true}))
}

// join makes one string of pieces.
func (sh *shell) join(pieces []piece) string {
	if len(pieces) == 1 && pieces[0].kind != boundary {
		return pieces[0].text
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.kind == boundary {
			b.WriteByte(' ')
			continue
		}
		sh.room(b.Len() + len(p.text))
		b.WriteString(p.text)
	}
	return b.String()
}

// hereDocument expands the body of a here-document.
func (sh *shell) hereDocument(w *syntax.Word, strip bool) string {
	parts := w.Parts
	if strip {
		parts = stripParts(parts)
	}
	return sh.join(sh.pieces(nil, parts, mode{quotes: true, here: true, noSplit: true, noTilde: true}))
}

// stripParts takes the tabs off the lines of a here-document, in literal text alone.
func stripParts(parts []syntax.WordPart) []syntax.WordPart {
	out := make([]syntax.WordPart, len(parts))
	start := true
	for i, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			c := *lit
			c.Value = stripTabs(lit.Value)
			if !start {
				kept := len(lit.Value) - len(strings.TrimLeft(lit.Value, "\t"))
				c.Value = lit.Value[:kept] + c.Value
			}
			start = strings.HasSuffix(lit.Value, "\n")
			out[i] = &c
			continue
		}
		start = false
		out[i] = p
	}
	return out
}

// pieces expands parts of a word.
func (sh *shell) pieces(out []piece, parts []syntax.WordPart, m mode) []piece {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			mm := m
			mm.noTilde = m.noTilde || i > 0
			out = sh.literalPieces(out, p.Value, mm, i+1 < len(parts))
		case *syntax.SglQuoted:
			out = sh.singleQuoted(out, p, m)
		case *syntax.DblQuoted:
			out = sh.doubleQuoted(out, p, m)
		case *syntax.ParamExp:
			out = sh.param(out, p, m)
		case *syntax.CmdSubst:
			out = append(out, m.computed(sh.substitute(p)))
		case *syntax.ArithmExp:
			out = append(out, m.computed(sh.arithString(p.X)))
		case *syntax.ProcSubst:
			out = append(out, piece{sh.processSubst(p), quoted})
		case *syntax.ExtGlob:
			out = sh.extGlobPieces(out, p)
		default:
			sh.fatalf("bad substitution")
		}
	}
	return out
}

// computed is a piece of what an expansion gave.
func (m mode) computed(s string) piece {
	if m.quotes {
		return piece{s, quoted}
	}
	return piece{s, expanded}
}

// singleQuoted is '…' and $'…'. Within "${x-'…'}" single quotes are characters.
func (sh *shell) singleQuoted(out []piece, p *syntax.SglQuoted, m mode) []piece {
	switch {
	case p.Dollar:
		return append(out, piece{unescape(p.Value), quoted})
	case m.quotes:
		text := "'" + p.Value + "'"
		if w, err := parseDocument(text); err == nil && strings.ContainsAny(text, "$`\\") {
			return sh.pieces(out, w.Parts, m)
		}
		return append(out, piece{text, quoted})
	}
	return append(out, piece{p.Value, quoted})
}

func (sh *shell) doubleQuoted(out []piece, p *syntax.DblQuoted, m mode) []piece {
	if len(p.Parts) == 0 {
		return append(out, piece{"", quoted})
	}
	n := len(out)
	out = sh.pieces(out, p.Parts, mode{quotes: true, noSplit: m.noSplit, noTilde: true})
	if len(out) == n && !onlyLists(p.Parts) {
		out = append(out, piece{"", quoted})
	}
	return out
}

// onlyLists reports whether parts are all "$@" or "${a[@]}", which may come to no field at all.
func onlyLists(parts []syntax.WordPart) bool {
	for _, p := range parts {
		pe, ok := p.(*syntax.ParamExp)
		if !ok {
			return false
		}
		if pe.Param != nil && pe.Param.Value == "@" || pe.Names == syntax.NamesPrefixWords {
			continue
		}
		if pe.Excl { // ${!ref} with ref=a[@]
			continue
		}
		if s, ok := indexLiteral(pe.Index); !ok || s != "@" {
			return false
		}
	}
	return true
}

// literalPieces takes the backslashes out of literal text.
func (sh *shell) literalPieces(out []piece, text string, m mode, more bool) []piece {
	if m.quotes {
		return append(out, piece{unquoteDouble(text, m), quoted})
	}
	k := literal
	if m.split {
		k = expanded
	}
	start := len(out)
	if !m.noTilde || m.assign {
		out, text = sh.tilde(out, text, m, more)
	}
	if strings.IndexByte(text, '\\') < 0 {
		if text != "" || len(out) == start {
			out = append(out, piece{text, k})
		}
		return out
	}
	return backslashes(out, text, k)
}

// backslashes makes what follows a backslash a quoted piece.
func backslashes(out []piece, text string, k kind) []piece {
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i > from {
			out = append(out, piece{text[from:i], k})
		}
		if i+1 < len(text) {
			i++
			if text[i] != '\n' {
				out = append(out, piece{text[i : i+1], quoted})
			}
		} else {
			out = append(out, piece{"\\", quoted})
		}
		from = i + 1
	}
	if from < len(text) {
		out = append(out, piece{text[from:], k})
	}
	return out
}

// unquoteDouble takes out the backslashes that mean something inside double quotes.
func unquoteDouble(text string, m mode) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch c := text[i+1]; {
			case c == '$' || c == '`' || c == '\\' || c == '"' && (!m.here || m.brace) || c == '}' && m.brace:
				i++
			case c == '\n':
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// literalWord returns a word's text when it is one literal.
func literalWord(w *syntax.Word) (string, bool) {
	if w == nil || len(w.Parts) != 1 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

// quotedWord reports whether anything of a here-document's delimiter is quoted.
func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.IndexByte(lit.Value, '\\') >= 0 {
			return true
		}
	}
	return false
}

// rawText is the text of a quoted here-document, which has only literal parts.
func rawText(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		}
	}
	return b.String()
}
