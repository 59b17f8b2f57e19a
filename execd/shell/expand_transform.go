package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// transform is ${name@op}.
func (sh *shell) transform(out []piece, pe *syntax.ParamExp, p parameter, m mode) []piece {
	op, _ := literalWord(pe.Exp.Word)
	sh.needSet(pe, p)
	if op == "A" || op == "a" || op == "K" || op == "k" {
		return sh.describe(out, op, p, m)
	}
	if !p.set && !p.list {
		return appendComputed(out, "", m)
	}
	edits := map[string]func(string) string{
		"Q": quoteValue, "E": unescape, "P": sh.prompt, "U": strings.ToUpper, "L": strings.ToLower,
		"u": func(s string) string {
			r, n := utf8.DecodeRuneInString(s)
			if n == 0 {
				return s
			}
			return string(unicode.ToUpper(r)) + s[n:]
		},
	}
	edit, ok := edits[op]
	if !ok {
		sh.fatalf("${%s@%s}: bad substitution", p.name, op)
	}
	return sh.emit(out, sh.each(p, edit), m)
}

// describe is the transformations that tell of a variable as a whole: @a its attributes, @A a declaration of it, @K and
// @k its keys and values.
func (sh *shell) describe(out []piece, op string, p parameter, m mode) []piece {
	v := p.v
	if v == nil && !p.set && op != "K" && op != "k" {
		return sh.emit(out, parameter{list: p.list, star: p.star}, m)
	}
	name := p.ref.name
	switch op {
	case "a":
		flags := ""
		if v != nil {
			flags = v.flags()
		}
		if p.list {
			return sh.emit(out, sh.each(p, func(string) string { return flags }), m)
		}
		return appendComputed(out, flags, m)
	case "A":
		if v == nil {
			return sh.emit(out, parameter{vals: []string{"set -- " + quoteValues(p.vals)}}, m)
		}
		if p.list && v.isArray() {
			return appendComputed(out, strings.TrimSuffix(declaration(name, v), "\n"), m)
		}
		s := name + "=" + quoteValue(firstOf(p.vals))
		if flags := v.flags(); flags != "" {
			s = "declare -" + flags + " " + s
		}
		return appendComputed(out, s, m)
	}
	if v == nil || !v.isArray() || !p.list {
		return sh.emit(out, sh.each(p, quoteValue), m)
	}
	keys, vals := v.keys(), v.values()
	var words []string
	for i, k := range keys {
		if op == "k" {
			words = append(words, k, vals[i])
			continue
		}
		words = append(words, quoteKey(k, v), doubleQuote(vals[i]))
	}
	if op == "K" {
		return appendComputed(out, strings.Join(words, " "), m)
	}
	return sh.emit(out, parameter{vals: words, list: true, star: p.star, set: true}, m)
}

func quoteKey(k string, v *variable) string {
	if v.attrs&attrAssoc == 0 {
		return k
	}
	return assocKey(k)
}

func firstOf(vals []string) string {
	if len(vals) == 0 {
		return ""
	}
	return vals[0]
}
