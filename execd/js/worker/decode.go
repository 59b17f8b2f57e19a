package worker

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// encodingOf gives the name of an encoding that has a label (WHATWG Encoding Standard, 4.2), or nothing when none has.
func encodingOf(args []any) (any, error) {
	e, err := htmlindex.Get(strings.Trim(str(args, 0), "\t\n\f\r "))
	if err != nil {
		return "", nil
	}
	name, err := htmlindex.Name(e)
	if err != nil || name == "replacement" || name == "x-user-defined" {
		return "", nil
	}
	return name, nil
}

// decode turns bytes in an encoding into text. With a third argument of 1 more of them is to come, and with a fourth errors
// are fatal. It gives the text and the bytes that are left for the next time, or nothing when there was an error.
func decode(args []any) (any, error) {
	name, b, more, fatal := str(args, 0), latin1(str(args, 1)), num(args, 2) == 1, num(args, 3) == 1
	var text string
	var rest []byte
	valid := true
	if name == "utf-8" {
		text, rest, valid = decodeUTF8(b, more)
	} else {
		text, rest, valid = decodeOther(name, b, more)
	}
	if fatal && !valid {
		return nil, nil
	}
	return []any{text, toLatin1(rest)}, nil
}

// decodeUTF8 puts U+FFFD in the place of each maximal part of an ill-formed sequence, as the standard has it: neither for
// each byte, nor once for several sequences.
func decodeUTF8(b []byte, more bool) (text string, rest []byte, valid bool) {
	if utf8.Valid(b) {
		return string(b), nil, true
	}
	var s strings.Builder
	valid = true
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			s.Write(b[:n])
			b = b[n:]
			continue
		}
		n, cut := illFormed(b)
		if cut && more {
			return s.String(), b, valid
		}
		valid = false
		s.WriteRune(utf8.RuneError)
		b = b[n:]
	}
	return s.String(), nil, valid
}

// illFormed returns the length of what is wrong at the beginning of b, and whether it is the beginning of something that
// could be right (The Unicode Standard, table 3-7).
func illFormed(b []byte) (n int, cut bool) {
	low, high, more := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		more = 1
	case c >= 0xE0 && c <= 0xEF:
		more = 2
	case c >= 0xF0 && c <= 0xF4:
		more = 3
	}
	switch b[0] {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	for n = 1; n <= more; n++ {
		if n == len(b) {
			return n, true
		}
		if b[n] < low || b[n] > high {
			return n, false
		}
		low, high = 0x80, 0xBF
	}
	return n, false
}

// withState are encodings in which a byte means what others have said long before it: they are decoded as a whole.
var withState = map[string]bool{"iso-2022-jp": true}

func decodeOther(name string, b []byte, more bool) (text string, rest []byte, valid bool) {
	e, err := htmlindex.Get(name)
	if err != nil {
		return "", nil, false
	}
	if more && withState[name] {
		return "", b, true
	}
	var out bytes.Buffer
	buf := make([]byte, 4<<10)
	d := e.NewDecoder()
	for in := b; ; {
		n, used, err := d.Transform(buf, in, !more)
		out.Write(buf[:n])
		in = in[used:]
		switch err {
		case transform.ErrShortDst:
		case transform.ErrShortSrc:
			if !more {
				return out.String() + "\uFFFD", nil, false
			}
			return out.String(), in, true
		default:
			return out.String(), nil, err == nil && replaced(out.Bytes()) <= meant(name, b)
		}
	}
}

// replaced counts U+FFFD, which a decoder puts in the place of what is wrong.
func replaced(text []byte) int { return bytes.Count(text, []byte("\uFFFD")) }

// meant counts U+FFFD that were there before: only few encodings have it.
func meant(name string, b []byte) (n int) {
	unit := map[string][2]byte{"utf-16le": {0xFD, 0xFF}, "utf-16be": {0xFF, 0xFD}}
	want, ok := unit[name]
	for i := 0; ok && i+1 < len(b); i += 2 {
		if [2]byte(b[i:]) == want {
			n++
		}
	}
	return n
}
