package text

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// sortMode says how the bytes of a key are compared.
type sortMode struct {
	blanks, dictionary, fold, printing, reverse bool
	kind                                        byte // n, g, h, M, R, V or 0
}

func (m *sortMode) set(letter byte) {
	switch letter {
	case 'b':
		m.blanks = true
	case 'd':
		m.dictionary = true
	case 'f':
		m.fold = true
	case 'i':
		m.printing = true
	case 'r':
		m.reverse = true
	case 'n', 'g', 'h', 'M', 'R', 'V':
		m.kind = letter
	}
}

// sortKey is a part of a line: from a character of a field to one of another.
type sortKey struct {
	mode                   sortMode
	startField, startChar  int // from 0
	endField, endChar      int // the field after the last; endChar characters of it
	limited                bool
	startBlanks, endBlanks bool
}

// parseKey reads F[.C][OPTS][,F[.C][OPTS]].
func parseKey(text string) (sortKey, error) {
	k := sortKey{}
	start, end, limited := strings.Cut(text, ",")
	field, char, hasChar, modes, err := parsePosition(start, text)
	if err != nil {
		return k, err
	}
	if field == 0 || hasChar && char == 0 {
		return k, errors.New(map[bool]string{true: "field number is zero", false: "character offset is zero"}[field == 0] +
			": invalid field specification '" + text + "'")
	}
	k.startField, k.startChar = field-1, max(char-1, 0)
	k.startBlanks = k.modes(modes)
	if limited {
		field, char, hasChar, modes, err = parsePosition(end, text)
		if err != nil {
			return k, err
		}
		if field == 0 {
			return k, errors.New("field number is zero: invalid field specification '" + text + "'")
		}
		k.limited, k.endField, k.endChar = true, field, char
		if hasChar && char > 0 {
			k.endField--
		}
		k.endBlanks = k.modes(modes)
	}
	return k, nil
}

// modes sets what letters ask for, and reports whether leading blanks are to be skipped on this side.
func (k *sortKey) modes(letters string) (blanks bool) {
	for i := range len(letters) {
		if letters[i] == 'b' {
			blanks = true
		} else {
			k.mode.set(letters[i])
		}
	}
	return blanks
}

func parsePosition(text, whole string) (field, char int, hasChar bool, modes string, err error) {
	digits := func() int {
		i := 0
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		n, convErr := strconv.Atoi(text[:i])
		if i == 0 {
			err = errors.New("invalid number at field start: invalid count at start of '" + text + "'")
		} else if convErr != nil {
			n = math.MaxInt32
		}
		text = text[i:]
		return n
	}
	if field = digits(); err != nil {
		return
	}
	if strings.HasPrefix(text, ".") {
		text, hasChar = text[1:], true
		if char = digits(); err != nil {
			err = errors.New("invalid number after '.': invalid count at start of '" + text + "'")
			return
		}
	}
	if strings.Trim(text, "bdfgiMhnRrV") != "" {
		err = errors.New("stray character in field spec: invalid field specification '" + whole + "'")
	}
	return field, char, hasChar, text, err
}

// sortLine is a line, with as much of its first key as decides most comparisons.
type sortLine struct {
	text   []byte
	key    []byte  // the first key's part of it
	prefix uint64  // of the text or the key, where it is compared as it is
	number float64 // where the first key is a number that this holds exactly
	exact  bool
}

func (s *sorter) prepare(text []byte) sortLine {
	line := sortLine{text: text}
	line.key = text
	if len(s.keys) > 0 {
		line.key = s.part(text, &s.keys[0])
	}
	if s.plainFirst {
		var head [8]byte
		copy(head[:], line.key)
		line.prefix = binary.BigEndian.Uint64(head[:])
	} else if s.keys[0].mode.kind == 'n' {
		line.number, line.exact = exactNumber(line.key)
	}
	return line
}

// exactNumber reads a number as sort -n does, when a float holds it exactly.
func exactNumber(b []byte) (float64, bool) {
	b = bytes.TrimLeft(b, " \t")
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, i := int64(0), 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i == 15 {
			return 0, false
		}
		n = n*10 + int64(b[i]-'0')
	}
	if i < len(b) && b[i] == '.' {
		return 0, false
	}
	if negative {
		n = -n
	}
	return float64(n), true
}

// field returns where the field n begins, at or after which its separator is skipped.
func (s *sorter) field(line []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(line); n-- {
		if s.delim >= 0 {
			i := bytes.IndexByte(line[at:], byte(s.delim))
			if i < 0 {
				return len(line)
			}
			at += i + 1
			continue
		}
		at = skipBlanks(line, at)
		for at < len(line) && line[at] != ' ' && line[at] != '\t' && line[at] != '\n' {
			at++
		}
	}
	return at
}

func skipBlanks(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\n') {
		at++
	}
	return at
}

// part returns the bytes of a line that a key is about.
func (s *sorter) part(line []byte, k *sortKey) []byte {
	start := s.field(line, k.startField)
	if k.startBlanks {
		start = skipBlanks(line, start)
	}
	start = min(start+k.startChar, len(line))
	end := len(line)
	if k.limited {
		end = s.field(line, k.endField)
		if k.endChar > 0 {
			if k.endBlanks {
				end = skipBlanks(line, end)
			}
			end = min(end+k.endChar, len(line))
		} else if s.delim >= 0 && end > 0 && (end < len(line) || line[end-1] == byte(s.delim)) && s.fields(line, k.endField) {
			end-- // the separator itself is not part of the field
		}
	}
	return line[start:max(start, end)]
}

// fields says whether a line has a separator after its n-th field.
func (s *sorter) fields(line []byte, n int) bool {
	return bytes.Count(line, []byte{byte(s.delim)}) >= n
}

// compare orders two lines completely: by the keys, then by all bytes unless that is not wanted.
func (s *sorter) compare(a, b *sortLine) int {
	if len(s.keys) > 0 {
		if order := s.compareKeys(a, b); order != 0 || s.stable || s.unique {
			return order
		}
	}
	order := 0
	switch {
	case len(s.keys) == 0 && a.prefix != b.prefix:
		order = 1
		if a.prefix < b.prefix {
			order = -1
		}
	default:
		order = bytes.Compare(a.text, b.text)
	}
	if s.global.reverse {
		return -order
	}
	return order
}

func (s *sorter) compareKeys(a, b *sortLine) int {
	if len(s.keys) == 0 {
		return s.compare(a, b)
	}
	for i := range s.keys {
		k := &s.keys[i]
		order := 0
		switch {
		case i == 0 && s.plainFirst && a.prefix != b.prefix:
			order = cmp.Compare(a.prefix, b.prefix)
		case i == 0 && a.exact && b.exact:
			order = cmp.Compare(a.number, b.number)
		case i == 0:
			order = s.compareParts(a.key, b.key, k.mode)
		default:
			order = s.compareParts(s.part(a.text, k), s.part(b.text, k), k.mode)
		}
		if order != 0 {
			if k.mode.reverse {
				return -order
			}
			return order
		}
	}
	return 0
}

func (s *sorter) compareParts(a, b []byte, m sortMode) int {
	switch m.kind {
	case 'n':
		return compareNumeric(a, b)
	case 'g':
		return compareGeneral(a, b)
	case 'h':
		return compareHuman(a, b)
	case 'M':
		return month(a) - month(b)
	case 'V':
		return tool.CompareVersions(string(a), string(b))
	case 'R':
		return compareRandom(a, b, s.seed)
	}
	if m.dictionary || m.fold || m.printing {
		return compareFiltered(a, b, m)
	}
	return bytes.Compare(a, b)
}

func compareRandom(a, b []byte, seed uint64) int {
	if bytes.Equal(a, b) {
		return 0
	}
	x, y := mix(a, seed), mix(b, seed)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return bytes.Compare(a, b)
}

// mix is FNV-1a from a seed, finished so that near texts come apart.
func mix(b []byte, seed uint64) uint64 {
	h := seed ^ 14695981039346656037
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}
