package regex

import (
	"io"
	"unicode/utf8"
)

// longText is a text that takes an automaton of the usual size so long that it must be stoppable inside. It may look at
// every instruction for every character.
const (
	longText  = 1 << 17
	usualSize = 32
)

// manyText is a text whose matches, all of them, can take the automaton as long: each may look at all that follows.
const manyText = 1 << 11

// runes feeds a text to the automaton, counting.
type runes struct {
	text []byte
	pos  int
	n    int
	size int // of the automaton
	step func(int) error
	err  error
}

// ReadRune implements io.RuneReader: the count's error is the end of the text.
func (r *runes) ReadRune() (rune, int, error) {
	if r.n += r.size / usualSize; r.n >= stepBatch && r.err == nil && r.step != nil {
		r.err = r.step(r.n)
		r.n = 0
	}
	if r.err != nil || r.pos >= len(r.text) {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text[r.pos:])
	r.pos += size
	return c, size, nil
}

// stream searches b from pos, as if it began there.
func (r *Regexp) stream(b []byte, pos int) ([]int, error) {
	in := &runes{text: b[pos:], size: r.size, step: r.options.Step}
	loc := r.re.FindReaderSubmatchIndex(in)
	if in.err != nil {
		return nil, in.err
	}
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += pos
		}
	}
	return loc, nil
}

func runeLen(b []byte) int {
	_, size := utf8.DecodeRune(b)
	return size
}

// lastStart returns where the last character of text begins. Characters are as repeatSingle counted them.
func lastStart(text []byte, n *node) int {
	if n.op != opLiteral {
		_, size := utf8.DecodeLastRune(text)
		return len(text) - size
	}
	at, last := 0, 0
	for at < len(text) {
		last = at
		at += prefix(text[at:], n.text, n.fold)
	}
	return last
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
