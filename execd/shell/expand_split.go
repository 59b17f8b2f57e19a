package shell

import "strings"

// field is what will be one argument, in pieces that are quoted or literal: only the latter can be patterns.
type field []piece

func (f field) text() string {
	if len(f) == 1 {
		return f[0].text
	}
	var b strings.Builder
	for _, p := range f {
		b.WriteString(p.text)
	}
	return b.String()
}

// fieldSize is about what a field takes beside its text.
const fieldSize = 96

// splitter cuts pieces into fields (the manual's "Word Splitting").
type splitter struct {
	sh           *shell
	white, other string // characters of $IFS
	fields       []field
	now          field
	have         bool // now is a field even if it is empty
	ended        bool // white space has ended a field, and a separator that follows belongs to it
}

// ifs returns the characters of $IFS: white space, and the others.
func (sh *shell) ifs() (white, other string) {
	s, ok := sh.get("IFS")
	if !ok || s == " \t\n" {
		return " \t\n", ""
	}
	for _, c := range s {
		if c == ' ' || c == '\t' || c == '\n' {
			white += string(c)
		} else {
			other += string(c)
		}
	}
	return white, other
}

func (sh *shell) split(pieces []piece) []field {
	if len(pieces) == 1 && pieces[0].kind <= literal {
		return []field{pieces[:1:1]}
	}
	s := splitter{sh: sh}
	read := false
	for _, p := range pieces {
		switch p.kind {
		case boundary:
			s.flush(s.have)
			s.ended = false
		case expanded:
			if !read {
				s.white, s.other = sh.ifs()
				read = true
			}
			s.cut(p.text)
		case literal:
			if p.text != "" {
				s.add(piece{p.text, literal})
			}
		default:
			s.add(piece{p.text, quoted})
		}
	}
	s.flush(s.have)
	return s.fields
}

func (s *splitter) add(p piece) {
	s.now = append(s.now, p)
	s.have, s.ended = true, false
}

func (s *splitter) flush(have bool) {
	if have {
		if s.fields = append(s.fields, s.now); len(s.fields)&255 == 0 {
			s.sh.step()
			s.sh.room(len(s.fields) * fieldSize)
		}
	}
	s.now, s.have = nil, false
}

// cut splits what an expansion gave. White space around a separator belongs to it; each separator that is no white
// space ends a field, an empty one too.
func (s *splitter) cut(text string) {
	if s.white == "" && s.other == "" {
		if text != "" {
			s.add(piece{text, literal})
		}
		return
	}
	from := -1
	for i, c := range text {
		isWhite, isOther := strings.ContainsRune(s.white, c), strings.ContainsRune(s.other, c)
		if !isWhite && !isOther {
			if from < 0 {
				from = i
			}
			continue
		}
		if from >= 0 {
			s.add(piece{text[from:i], literal})
			from = -1
		}
		switch {
		case isWhite && s.have:
			s.flush(true)
			s.ended = true
		case isOther && s.ended:
			s.ended = false
		case isOther:
			s.flush(true)
		}
	}
	if from >= 0 {
		s.add(piece{text[from:], literal})
	}
}
