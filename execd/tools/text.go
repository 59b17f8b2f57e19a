package tools

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	bom      = "\uFEFF"
	lineFeed = "\n"
	crlf     = "\r\n"
)

// isBinary tells by the beginning of a file, as git and grep do.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), sniffed)], 0) >= 0
}

// imageType returns the MIME type when a file that begins so is an image that models take.
func imageType(head []byte) (mime string, ok bool) {
	mime = http.DetectContentType(head)
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime, true
	}
	return mime, false
}

// wholeRunes cuts off the beginning of a character whose rest is not in b.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if at := len(b) - i; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			return b
		}
	}
	return b
}

// countLines counts the last line too when it has no line feed.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte(lineFeed))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// onlyCRLF reports whether every line of s that ends, ends in CR LF, and one does.
func onlyCRLF(s string) bool {
	n := strings.Count(s, crlf)
	return n > 0 && n == strings.Count(s, lineFeed)
}

// toCRLF gives every line that ends in LF alone a CR before it.
func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, crlf, lineFeed), lineFeed, crlf)
}

// cut shortens text to so many bytes, at a character.
func cut(s string, limit int) (short string, was bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
