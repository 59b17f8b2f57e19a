package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// braces expands {a,b} and {1..9}. It works on the parts before anything else is expanded: what is quoted or is an
// expansion is opaque.
func (sh *shell) braces(parts []syntax.WordPart) [][]syntax.WordPart {
	if !sh.on(optBraceexpand) || !mayHaveBraces(parts) {
		return [][]syntax.WordPart{parts}
	}
	count := 0
	words := sh.expandBraces(atoms(parts), &count)
	out := make([][]syntax.WordPart, len(words))
	for i, w := range words {
		if i&255 == 255 {
			sh.step()
		}
		out[i] = w.parts()
	}
	return out
}

func mayHaveBraces(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// atom is a character of literal text, with the backslash before it, or a part of another kind.
type atom struct {
	text string
	part syntax.WordPart
}

type atomWord []atom

func atoms(parts []syntax.WordPart) atomWord {
	var out atomWord
	for _, p := range parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			out = append(out, atom{part: p})
			continue
		}
		for s := lit.Value; s != ""; {
			_, n := utf8.DecodeRuneInString(s)
			if s[0] == '\\' && len(s) > 1 {
				_, n = utf8.DecodeRuneInString(s[1:])
				n++
			}
			out = append(out, atom{text: s[:n]})
			s = s[n:]
		}
	}
	return out
}

// parts joins atoms into parts of a word again.
func (w atomWord) parts() []syntax.WordPart {
	var out []syntax.WordPart
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, &syntax.Lit{Value: b.String()})
			b.Reset()
		}
	}
	for _, a := range w {
		if a.part != nil {
			flush()
			out = append(out, a.part)
			continue
		}
		b.WriteString(a.text)
	}
	flush()
	return out
}

// expandBraces expands the first brace expression, and the others in what comes of it.
func (sh *shell) expandBraces(w atomWord, count *int) []atomWord {
	for i := range w {
		if w[i].text != "{" {
			continue
		}
		items, end, ok := sh.braceItems(w, i, count)
		if !ok {
			continue
		}
		tails := sh.expandBraces(w[end+1:], count)
		out := make([]atomWord, 0, len(items)*len(tails))
		for _, item := range items {
			for _, tail := range tails {
				if *count++; *count > maxBraceWords {
					sh.fatalf("brace expansion: too many words")
				}
				if *count&255 == 0 {
					sh.step()
				}
				word := make(atomWord, 0, i+len(item)+len(tail))
				out = append(out, append(append(append(word, w[:i]...), item...), tail...))
			}
		}
		return out
	}
	return []atomWord{w}
}

// braceItems finds the brace expression that starts at i: what it stands for, and where it ends.
func (sh *shell) braceItems(w atomWord, i int, count *int) (items []atomWord, end int, ok bool) {
	depth, from := 0, i+1
	var raw []atomWord
	for j := i; j < len(w); j++ {
		switch w[j].text {
		case "{":
			depth++
		case ",":
			if depth == 1 {
				raw = append(raw, w[from:j])
				from = j + 1
			}
		case "}":
			if depth--; depth > 0 {
				continue
			}
			if raw == nil {
				items, ok = sh.braceSequence(w[i+1 : j])
				return items, j, ok
			}
			for _, r := range append(raw, w[from:j]) {
				items = append(items, sh.expandBraces(r, count)...)
			}
			return items, j, true
		}
	}
	return nil, 0, false
}

// braceSequence is {x..y} and {x..y..step}, of numbers or of single letters. What it makes is counted where words are made
// of it.
func (sh *shell) braceSequence(w atomWord) ([]atomWord, bool) {
	var b strings.Builder
	for _, a := range w {
		if a.part != nil {
			return nil, false
		}
		b.WriteString(a.text)
	}
	ends := strings.Split(b.String(), "..")
	if len(ends) != 2 && len(ends) != 3 {
		return nil, false
	}
	step := int64(1)
	if len(ends) == 3 {
		n, err := strconv.ParseInt(ends[2], 10, 64)
		if err != nil {
			return nil, false
		}
		if step = max(n, -n); step == 0 {
			step = 1
		}
	}
	x, errX := strconv.ParseInt(ends[0], 10, 64)
	y, errY := strconv.ParseInt(ends[1], 10, 64)
	format := func(n int64) string { return padded(n, seqWidth(ends[0], ends[1])) }
	switch {
	case errX == nil && errY == nil:
	case isLetter(ends[0]) && isLetter(ends[1]):
		x, y = int64(ends[0][0]), int64(ends[1][0])
		format = func(n int64) string { return letterAtom(byte(n)) }
	default:
		return nil, false
	}
	if n := (max(x, y) - min(x, y)) / step; n < 0 || n >= maxBraceWords {
		sh.fatalf("brace expansion: too many words")
	}
	var out []atomWord
	for n := x; ; {
		if len(out)&255 == 0 {
			sh.step()
		}
		out = append(out, atomWord{{text: format(n)}})
		if y >= x {
			if n > y-step {
				break
			}
			n += step
		} else {
			if n < y+step {
				break
			}
			n -= step
		}
	}
	return out, true
}

func isLetter(s string) bool {
	return len(s) == 1 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

// letterAtom is a character between letters; {Z..a} has some that would mean something.
func letterAtom(c byte) string {
	if isLetter(string(rune(c))) {
		return string(rune(c))
	}
	return "\\" + string(rune(c))
}

// seqWidth is to how many digits numbers are padded: a leading zero asks for it.
func seqWidth(a, b string) int {
	zero := func(s string) bool {
		s = strings.TrimLeft(s, "+-")
		return len(s) > 1 && s[0] == '0'
	}
	if zero(a) || zero(b) {
		return max(len(a), len(b))
	}
	return 0
}

func padded(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	if len(s) >= width {
		return s
	}
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	return sign + strings.Repeat("0", width-len(sign)-len(s)) + s
}
