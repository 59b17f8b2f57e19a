package worker

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Ill-formed sequences are replaced as the Unicode Standard has it (section 3.9, table 3-8), and those that are cut are
// kept for what is to come.
func TestDecodeUTF8(t *testing.T) {
	const r = "\uFFFD"
	for _, tt := range []struct {
		in, text, rest string // rest when more is to come: text has U+FFFD for it when not
		valid          bool
	}{
		{"", "", "", true},
		{"h\u00e9\u20ac\U0001F600", "h\u00e9\u20ac\U0001F600", "", true},
		{"\uFFFD", "\uFFFD", "", true},
		{"a\xff\xfeb", "a" + r + r + "b", "", false},
		{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", strings.Repeat(r, 8) + "A", "", false},
		{"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", strings.Repeat(r, 8) + "A", "", false},
		{"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", strings.Repeat(r, 5) + "A" + r + r + "B", "", false},
		{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", strings.Repeat(r, 4) + "A", "", false},
		{"a\xE2\x82", "a" + r, "\xE2\x82", true},
		{"a\xF0\x9F\x98", "a" + r, "\xF0\x9F\x98", true},
		{"\xC3", r, "\xC3", true},
		{"\xE0\x80", r + r, "", false},
	} {
		text, rest, valid := decodeUTF8([]byte(tt.in), false)
		if text != tt.text || len(rest) != 0 || valid != (tt.valid && tt.rest == "") {
			t.Errorf("%q: %q, %q, %v", tt.in, text, rest, valid)
		}
		text, rest, valid = decodeUTF8([]byte(tt.in), true)
		want := tt.text
		if tt.rest != "" {
			want = strings.TrimSuffix(want, r)
		}
		if text != want || string(rest) != tt.rest || valid != tt.valid {
			t.Errorf("%q, with more to come: %q, %q, %v", tt.in, text, rest, valid)
		}
	}
}

// Where bytes are parted does not matter, and text comes of any.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a\xE2\x82\xACb", "\xF0\x9F\x98\x80\xff", "\x1b$B$\"\x1b(B", "\xff\xfea\x00\x3d\xd8\x00\xde", "\x82\xa0\xc4\xe3"} {
		f.Add([]byte(s), 1)
	}
	names := []string{"utf-8", "utf-16le", "utf-16be", "windows-1252", "shift_jis", "gbk", "gb18030", "euc-jp", "euc-kr", "big5", "iso-2022-jp"}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if at < 0 || at > len(b) {
			return
		}
		for _, name := range names {
			decodeSome := func(b []byte, more bool) (string, []byte) {
				if name == "utf-8" {
					text, rest, _ := decodeUTF8(b, more)
					return text, rest
				}
				text, rest, _ := decodeOther(name, b, more)
				return text, rest
			}
			whole, _ := decodeSome(b, false)
			first, rest := decodeSome(b[:at], true)
			second, _ := decodeSome(append(rest[:len(rest):len(rest)], b[at:]...), false)
			if whole != first+second || !utf8.ValidString(whole) {
				t.Errorf("%s of %q: %q, in parts %q, %q", name, b, whole, first, second)
			}
		}
	})
}
