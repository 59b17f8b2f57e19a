package archive

import (
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// transform is one s command of --transform: names are rewritten by it as sed would.
type transform struct {
	re    *regex.Regexp
	with  string
	all   bool
	first int // the match from which on it replaces, from 1
}

// addTransforms reads commands with semicolons between them.
func (t *tarrer) addTransforms(text string) error {
	for text != "" {
		rest, tr, err := t.readTransform(text)
		if err != nil {
			return usage(t.Call, "Invalid transform expression")
		}
		t.transforms = append(t.transforms, tr)
		text = rest
	}
	return nil
}

type transformError string

func (e transformError) Error() string { return string(e) }

func (t *tarrer) readTransform(text string) (rest string, tr transform, err error) {
	if len(text) < 4 || text[0] != 's' {
		return "", tr, transformError("not an s command: " + text)
	}
	expr, rest, ok := untilDelimiter(text[2:], text[1])
	if !ok {
		return "", tr, transformError("missing second delimiter")
	}
	tr.with, rest, ok = untilDelimiter(rest, text[1])
	if !ok {
		return "", tr, transformError("missing last delimiter")
	}
	o := regex.Options{Step: func(n int) error { return t.Step(t.ctx, 1+n>>6) }}
	for rest != "" && rest[0] != ';' {
		switch c := rest[0]; {
		case c == 'g':
			tr.all = true
		case c == 'i':
			o.Fold = true
		case c == 'x':
			o.Syntax = regex.Extended
		case strings.IndexByte("rRsShH", c) >= 0: // which names are meant: all
		case c >= '0' && c <= '9':
			n := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			tr.first, _ = strconv.Atoi(rest[:n]) // digits are all that there is
			rest = rest[n:]
			continue
		default:
			return "", tr, transformError("unknown flag: " + rest[:1])
		}
		rest = rest[1:]
	}
	tr.re, err = regex.Compile(expr, o)
	return strings.TrimLeft(rest, "; "), tr, err
}

// untilDelimiter cuts at a delimiter that is not behind a backslash.
func untilDelimiter(text string, delimiter byte) (before, after string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == delimiter:
			return b.String(), text[i+1:], true
		case text[i] == '\\' && i+1 < len(text):
			if i++; text[i] != delimiter {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

// transformed returns the name that a member gets.
func (t *tarrer) transformed(name string) string {
	for _, tr := range t.transforms {
		name = tr.apply(name)
	}
	return name
}

func (tr transform) apply(name string) string {
	all, err := tr.re.FindAll([]byte(name), -1)
	if err != nil || len(all) < tr.first {
		return name
	}
	from := max(tr.first-1, 0)
	all = all[min(from, len(all)):]
	if !tr.all {
		all = all[:min(1, len(all))]
	}
	var b strings.Builder
	at := 0
	for _, loc := range all {
		b.WriteString(name[at:loc[0]])
		b.WriteString(tr.replacement(name, loc))
		at = loc[1]
	}
	return b.String() + name[at:]
}

// replacement fills in & and \1 to \9.
func (tr transform) replacement(name string, loc []int) string {
	group := func(n int) string {
		if 2*n+1 < len(loc) && loc[2*n] >= 0 {
			return name[loc[2*n]:loc[2*n+1]]
		}
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(tr.with); i++ {
		switch c := tr.with[i]; {
		case c == '&':
			b.WriteString(group(0))
		case c == '\\' && i+1 < len(tr.with):
			if i++; tr.with[i] >= '0' && tr.with[i] <= '9' {
				b.WriteString(group(int(tr.with[i] - '0')))
			} else {
				b.WriteByte(tr.with[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
