package awk

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

func sub(in *interp, args []expr) (value, error) { return in.replace(args, false) }

func gsub(in *interp, args []expr) (value, error) { return in.replace(args, true) }

func (in *interp) replace(args []expr, all bool) (value, error) {
	re, err := in.regexOf(args[0])
	if err != nil {
		return value{}, err
	}
	with, err := in.argText(args[1])
	if err != nil {
		return value{}, err
	}
	var target expr = fieldExpr{numberExpr(0)}
	if len(args) > 2 {
		target = args[2]
	}
	text, err := in.argText(target)
	if err != nil {
		return value{}, err
	}
	n := 1
	if all {
		n = -1
	}
	var b strings.Builder
	at, found, counted := 0, 0, int64(0)
	replace := func(loc []int) error {
		b.WriteString(text[at:loc[0]])
		writeReplacement(&b, with, text, loc, false)
		at = loc[1]
		found++
		if int64(b.Len()) <= counted {
			return nil
		}
		counted += growth
		return in.Take(growth)
	}
	if len(text) >= manyMatches && all {
		err = re.Each([]byte(text), replace)
	} else {
		var locs [][]int
		if locs, err = re.FindAll([]byte(text), n); err == nil {
			for _, loc := range locs {
				if err = replace(loc); err != nil {
					break
				}
			}
		}
	}
	_ = in.Take(-counted) // the variable counts its value
	if err != nil || found == 0 {
		return num(0), err
	}
	b.WriteString(text[at:])
	if !isLvalue(ungroup(target)) {
		return num(float64(found)), nil
	}
	return num(float64(found)), in.assign(target, str(b.String()))
}

// manyMatches is how long a text is whose matches are not held all at once, and growth how much of what replaces it is
// counted at once.
const (
	manyMatches = 64 << 10
	growth      = 1 << 20
)

func ungroup(x expr) expr {
	if g, ok := x.(groupExpr); ok && len(g.list) == 1 {
		return ungroup(g.list[0])
	}
	return x
}

// writeReplacement writes the replacement of one match: & is what matched, \& an ampersand, and in gensub \1 a group.
func writeReplacement(b *strings.Builder, with, text string, loc []int, groups bool) {
	for i := 0; i < len(with); i++ {
		c := with[i]
		switch {
		case c == '&':
			b.WriteString(text[loc[0]:loc[1]])
		case c == '\\' && i+1 < len(with) && with[i+1] == '&':
			b.WriteByte('&')
			i++
		case c == '\\' && i+1 < len(with) && with[i+1] == '\\':
			b.WriteByte('\\')
			i++
		case c == '\\' && i+1 < len(with) && groups && isDigit(with[i+1]):
			i++
			if g := 2 * int(with[i]-'0'); g+1 < len(loc) && loc[g] >= 0 {
				b.WriteString(text[loc[g]:loc[g+1]])
			}
		default:
			b.WriteByte(c)
		}
	}
}

func gensub(in *interp, args []expr) (value, error) {
	re, err := in.regexOf(args[0])
	if err != nil {
		return value{}, err
	}
	with, err := in.argText(args[1])
	if err != nil {
		return value{}, err
	}
	how, err := in.argText(args[2])
	if err != nil {
		return value{}, err
	}
	text := in.whole()
	if len(args) > 3 {
		if text, err = in.argText(args[3]); err != nil {
			return value{}, err
		}
	}
	nth, all := 1, strings.HasPrefix(how, "g") || strings.HasPrefix(how, "G")
	if n := input(how).num(); !all && n >= 1 {
		nth = int(n)
	}
	locs, err := re.FindAll([]byte(text), -1)
	if err != nil {
		return value{}, err
	}
	var b strings.Builder
	at := 0
	for i, loc := range locs {
		if !all && i+1 != nth {
			continue
		}
		b.WriteString(text[at:loc[0]])
		writeReplacement(&b, with, text, loc, true)
		at = loc[1]
	}
	b.WriteString(text[at:])
	return str(b.String()), nil
}

func match(in *interp, args []expr) (value, error) {
	text, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	re, err := in.regexOf(args[1])
	if err != nil {
		return value{}, err
	}
	loc, err := re.Find([]byte(text))
	if err != nil {
		return value{}, err
	}
	start, size := 0, -1
	if loc != nil {
		start = utf8.RuneCountInString(text[:loc[0]]) + 1
		size = utf8.RuneCountInString(text[loc[0]:loc[1]])
	}
	in.vars[varRSTART], in.vars[varRLENGTH] = num(float64(start)), num(float64(size))
	if len(args) > 2 {
		a, err := in.arrayArg(args[2])
		if err != nil {
			return value{}, err
		}
		if err := in.fill(a, nil); err != nil {
			return value{}, err
		}
		for i := 0; i < len(loc)/2; i++ {
			if loc[2*i] < 0 {
				continue
			}
			c, err := in.cellOf(a, strconv.Itoa(i))
			if err != nil {
				return value{}, err
			}
			c.v = input(text[loc[2*i]:loc[2*i+1]])
		}
	}
	return num(float64(start)), nil
}
