package awk

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFields bounds field numbers: a field is memory.
const maxFields = 1 << 20

// record is $0 and its fields. Either may be behind the other until somebody looks.
type record struct {
	text   string
	fields []string
	isSet  []bool // fields that the program has set are texts, whatever they look like
	split  bool   // fields are those of text
	joined bool   // text is that of the fields
}

func (in *interp) setRecord(text string) {
	r := &in.record
	r.text, r.split, r.joined = text, false, true
}

// whole returns $0.
func (in *interp) whole() string {
	r := &in.record
	if !r.joined {
		r.text, r.joined = strings.Join(r.fields, in.vars[varOFS].s), true
	}
	return r.text
}

// split makes the fields those of $0, and NF their number.
func (in *interp) split() {
	r := &in.record
	if r.split {
		return
	}
	switch in.by {
	case varFPAT:
		r.fields = in.splitPattern(r.fields[:0], r.text, in.vars[varFPAT].s)
	case varFIELDWIDTHS:
		r.fields = splitWidths(r.fields[:0], r.text, in.vars[varFIELDWIDTHS].s)
	default:
		r.fields = in.splitInto(r.fields[:0], r.text, in.vars[varFS].s)
	}
	r.isSet = append(r.isSet[:0], make([]bool, len(r.fields))...)
	r.split = true
	in.vars[varNF] = num(float64(len(r.fields)))
}

// checkWidths refuses a FIELDWIDTHS that is not made of numbers, each with how much to skip before it perhaps, and a * at
// the end for the rest.
func checkWidths(list string) error {
	words := strings.Fields(list)
	for i, word := range words {
		if word == "*" && i == len(words)-1 {
			continue
		}
		skip, width, skips := strings.Cut(word, ":")
		if !skips {
			skip, width = "0", word
		}
		_, errSkip := strconv.ParseUint(skip, 10, 31)
		n, err := strconv.ParseUint(width, 10, 31)
		if errSkip != nil || err != nil || n == 0 {
			return fatal("invalid FIELDWIDTHS value, for field %d, near `%s'", i+1, word)
		}
	}
	return nil
}

// splitWidths cuts a text into fields of the widths of a list, in characters; what is missing at the end is no field.
func splitWidths(out []string, text, list string) []string {
	take := func(n int) (part string) {
		end := 0
		for ; n > 0 && end < len(text); n-- {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		part, text = text[:end], text[end:]
		return part
	}
	for _, word := range strings.Fields(list) {
		skip, width, skips := strings.Cut(word, ":")
		if !skips {
			skip, width = "0", word
		}
		n, err := strconv.Atoi(skip)
		if err != nil {
			return out
		}
		take(n)
		if text == "" {
			return out
		}
		if width == "*" {
			return append(out, text)
		}
		if n, err = strconv.Atoi(width); err != nil {
			return out
		}
		out = append(out, take(n))
	}
	return out
}

func (in *interp) field(i int) value {
	if i == 0 {
		return input(in.whole())
	}
	in.split()
	if i > len(in.record.fields) {
		return value{}
	}
	if in.record.isSet[i-1] {
		return str(in.record.fields[i-1])
	}
	return input(in.record.fields[i-1])
}

func (in *interp) setField(i int, text string) error {
	if i == 0 {
		in.setRecord(text)
		return nil
	}
	in.split()
	if i > len(in.record.fields) {
		if err := in.setNF(i); err != nil {
			return err
		}
	}
	in.record.fields[i-1], in.record.isSet[i-1] = text, false
	in.record.joined = false
	return nil
}

func (in *interp) setNF(n int) error {
	if n < 0 || n > maxFields {
		return fatal("NF set to invalid value")
	}
	r := &in.record
	for len(r.fields) < n {
		r.fields, r.isSet = append(r.fields, ""), append(r.isSet, false)
	}
	r.fields, r.isSet = r.fields[:n], r.isSet[:n]
	r.joined = false
	in.vars[varNF] = num(float64(n))
	return nil
}

// splitInto cuts a text at a separator as FS says: blanks for a space, a literal for one other character, else a
// regular expression; every character for nothing. In paragraph mode a newline separates too.
func (in *interp) splitInto(out []string, text, separator string) []string {
	if text == "" {
		return out
	}
	paragraph := in.vars[varRS].s == ""
	switch {
	case separator == " ":
		return appendWords(out, text)
	case separator == "":
		for _, r := range text {
			out = append(out, string(r))
		}
		return out
	case utf8.RuneCountInString(separator) == 1 && separator != `\` && !paragraph && !in.vars[varIGNORECASE].truth():
		for {
			i := strings.Index(text, separator)
			if i < 0 {
				return append(out, text)
			}
			out, text = append(out, text[:i]), text[i+len(separator):]
		}
	}
	source := separator
	if utf8.RuneCountInString(separator) == 1 {
		source = "[" + separator + "]"
		if separator == `\` || separator == "^" || separator == "]" {
			source = `\` + separator
		}
	}
	if paragraph {
		source = "(" + source + `)|\n`
	}
	return in.splitRegex(out, nil, text, source)
}

// splitRegex cuts at matches, and appends what separated the parts to seps when that is not nil.
func (in *interp) splitRegex(out []string, seps *[]string, text, source string) []string {
	re, err := in.compile(source)
	if err != nil {
		return append(out, text)
	}
	all, err := re.FindAll([]byte(text), -1)
	if err != nil {
		return append(out, text)
	}
	at := 0
	for _, loc := range all {
		if loc[0] == loc[1] {
			continue
		}
		out = append(out, text[at:loc[0]])
		if seps != nil {
			*seps = append(*seps, text[loc[0]:loc[1]])
		}
		at = loc[1]
	}
	return append(out, text[at:])
}

// splitPattern takes the matches of a pattern for the fields.
func (in *interp) splitPattern(out []string, text, source string) []string {
	re, err := in.compile(source)
	if err != nil {
		return out
	}
	all, _ := re.FindAll([]byte(text), -1)
	for _, loc := range all {
		out = append(out, text[loc[0]:loc[1]])
	}
	return out
}

func appendWords(out []string, text string) []string {
	start := -1
	for i := range len(text) {
		c := text[i]
		if c == ' ' || c == '\t' || c == '\n' {
			if start >= 0 {
				out = append(out, text[start:i])
				start = -1
			}
		} else if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, text[start:])
	}
	return out
}
