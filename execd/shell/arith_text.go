package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An expression is evaluated as bash does it: first its text is expanded like a string in double quotes, then what came
// of that is parsed. So a variable may hold an operator. The parser has made a tree of the text already, which is laid
// out again here.

// arithPart is text of an expression, or a word in it that is to be expanded.
type arithPart struct {
	text string
	word *syntax.Word
}

// arithParts lays out an expression.
func arithParts(x syntax.ArithmExpr) []arithPart {
	l := arithLayout{}
	l.expr(x)
	l.flush()
	return l.parts
}

type arithLayout struct {
	parts []arithPart
	b     strings.Builder
	at    uint // offset in the source after what is laid out
}

func (l *arithLayout) flush() {
	if l.b.Len() > 0 {
		l.parts = append(l.parts, arithPart{text: l.b.String()})
		l.b.Reset()
	}
}

// gap lays out the blanks before what comes at pos: in a subscript they may be part of a key.
func (l *arithLayout) gap(pos syntax.Pos) {
	if !pos.IsValid() {
		return
	}
	if n := pos.Offset(); l.at > 0 && n > l.at && n-l.at < 64 {
		l.b.WriteString(strings.Repeat(" ", int(n-l.at)))
	}
}

func (l *arithLayout) token(pos syntax.Pos, s string) {
	l.gap(pos)
	l.b.WriteString(s)
	if pos.IsValid() {
		l.at = pos.Offset() + uint(len(s))
	}
}

func (l *arithLayout) expr(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		l.expr(x.X)
		l.token(x.OpPos, x.Op.String())
		l.expr(x.Y)
	case *syntax.UnaryArithm:
		if x.Post {
			l.expr(x.X)
			l.token(x.OpPos, x.Op.String())
			return
		}
		l.token(x.OpPos, x.Op.String())
		l.expr(x.X)
	case *syntax.ParenArithm:
		l.token(x.Lparen, "(")
		l.expr(x.X)
		l.token(x.Rparen, ")")
	case *syntax.Word:
		l.gap(x.Pos())
		l.word(x)
		l.at = x.End().Offset()
	}
}

// word lays out a word: its literals, and names with a subscript, are the expression's own.
func (l *arithLayout) word(w *syntax.Word) {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			l.b.WriteString(p.Value)
			continue
		case *syntax.ParamExp:
			if p.Short && !p.Dollar.IsValid() && p.Index != nil {
				l.b.WriteString(p.Param.Value + "[")
				l.at = 0
				l.expr(p.Index)
				l.b.WriteString("]")
				continue
			}
		}
		l.flush()
		l.parts = append(l.parts, arithPart{word: &syntax.Word{Parts: []syntax.WordPart{p}}})
	}
}

// arithText is the text of an expression, expanded.
func (sh *shell) arithText(x syntax.ArithmExpr) string {
	if x == nil {
		return ""
	}
	if s, ok := indexLiteral(x); ok && strings.IndexByte(s, '\\') < 0 {
		return s
	}
	parts := sh.cache.arithText(x)
	if len(parts) == 1 && parts[0].word == nil {
		return unescapeArith(parts[0].text)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.word == nil {
			b.WriteString(unescapeArith(p.text))
			continue
		}
		b.WriteString(sh.join(sh.pieces(nil, p.word.Parts, mode{noSplit: true, noTilde: true})))
	}
	return b.String()
}

// unescapeArith takes backslashes out of literal text of an expression or a key.
func unescapeArith(s string) string { return unescapePattern(s) }

// arithExpr evaluates an expression of the tree.
func (sh *shell) arithExpr(x syntax.ArithmExpr) int64 { return sh.arith(sh.arithText(x)) }

// arithString is $((…)).
func (sh *shell) arithString(x syntax.ArithmExpr) string {
	return strconv.FormatInt(sh.arithExpr(x), 10)
}
