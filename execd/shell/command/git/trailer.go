package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// withNewline ends a text with a newline, unless there is none.
func withNewline(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// Lines at the end of a message that git itself writes.
const (
	signedOffBy = "Signed-off-by: "
	pickedFrom  = "(cherry picked from commit "
)

// hasTrailers says whether a message ends with lines such as Signed-off-by, after another paragraph: git-interpret-trailers(1).
func hasTrailers(text string) bool {
	lines := strings.Split(strings.TrimRight(text, " \t\n"), "\n")
	trailers, others, folded, known := 0, 0, 0, false
	for i, line := range slices.Backward(lines) {
		token, _, named := strings.Cut(line, ":")
		token = strings.TrimRight(token, " \t")
		switch {
		case strings.TrimSpace(line) == "":
			return i > 0 && trailers > 0 && (others+folded == 0 || known && trailers*3 >= others+folded)
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, signedOffBy), strings.HasPrefix(line, pickedFrom):
			known = true
			trailers, folded = trailers+1, 0
		case line[0] == ' ' || line[0] == '\t':
			folded++
		case named && token != "" && strings.Trim(token, trailerLetters) == "":
			trailers, folded = trailers+1, 0
		default:
			others, folded = others+1+folded, 0
		}
	}
	return false // there is only one paragraph
}

const trailerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

// signedOff adds who signs off a message, unless that is its last line.
func signedOff(text string, who object.Signature) string {
	line := signedOffBy + who.Name + " <" + who.Email + ">\n"
	text = withNewline(text)
	switch {
	case text == "":
		return "\n\n" + line
	case text == line, hasTrailers(text) && strings.HasSuffix(text, "\n"+line):
		return text
	case !hasTrailers(text) && !strings.HasSuffix(text, "\n\n"):
		text += "\n"
	}
	return text + line
}
