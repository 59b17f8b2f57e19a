package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// attrs are what declare gives to a variable.
type attrs uint16

const (
	attrExport attrs = 1 << iota
	attrReadonly
	attrInteger
	attrLower
	attrUpper
	attrCapital
	attrNameref
	attrIndexed // declared as an array, with or without elements
	attrAssoc
	attrTrace
)

const attrCase = attrLower | attrUpper | attrCapital

// variable is a name's value in one shell. A shell may change it only while gen is the shell's own: a fork gives both
// shells a new one, and whoever then wants to change what they share makes a copy first.
type variable struct {
	gen     uint64
	attrs   attrs
	set     bool // has a value
	str     string
	list    *indexed // with attrIndexed; nil for none yet
	assoc   *assoc   // with attrAssoc
	special *special
}

// special is a variable that the shell computes.
type special struct {
	get    func(*shell) string
	list   func(*shell) []string      // for arrays, in place of get
	assign func(*shell, string) error // nil: what is assigned is dropped
}

func (v *variable) clone(gen uint64) *variable {
	c := *v
	c.gen, c.list, c.assoc = gen, v.list.clone(), v.assoc.clone()
	return &c
}

func (v *variable) isArray() bool { return v.attrs&(attrIndexed|attrAssoc) != 0 }

// scalar is the value of the plain name: of an array, element 0.
func (v *variable) scalar() (string, bool) {
	switch {
	case v == nil:
		return "", false
	case v.attrs&attrAssoc != 0:
		if v.assoc == nil {
			return "", false
		}
		e, ok := v.assoc.m.Get("0")
		return e.value, ok
	case v.attrs&attrIndexed != 0:
		if v.list == nil {
			return "", false
		}
		return v.list.m.Get(0)
	}
	return v.str, v.set
}

// values are all elements; a scalar is an array of one.
func (v *variable) values() []string {
	switch {
	case v == nil:
		return nil
	case v.attrs&attrAssoc != 0:
		return v.assoc.values()
	case v.attrs&attrIndexed != 0:
		return v.list.values()
	case v.set:
		return []string{v.str}
	}
	return nil
}

func (v *variable) keys() []string {
	switch {
	case v == nil:
		return nil
	case v.attrs&attrAssoc != 0:
		if v.assoc == nil {
			return nil
		}
		return v.assoc.keys()
	case v.attrs&attrIndexed != 0:
		if v.list == nil {
			return nil
		}
		return v.list.keys()
	case v.set:
		return []string{"0"}
	}
	return nil
}

// size is about how many bytes the variable takes, for the meter.
func (v *variable) size() int64 {
	n := int64(len(v.str))
	if v.list != nil {
		n += int64(v.list.m.Len()) * 32
	}
	if v.assoc != nil {
		n += int64(v.assoc.m.Len()) * 64
	}
	return n
}

// flags are the letters of the attributes in declare's order.
func (v *variable) flags() string {
	var b strings.Builder
	for _, f := range []struct {
		a attrs
		c byte
	}{
		{attrIndexed, 'a'}, {attrAssoc, 'A'}, {attrInteger, 'i'}, {attrNameref, 'n'}, {attrReadonly, 'r'},
		{attrTrace, 't'}, {attrExport, 'x'}, {attrCapital, 'c'}, {attrLower, 'l'}, {attrUpper, 'u'},
	} {
		if v.attrs&f.a != 0 {
			b.WriteByte(f.c)
		}
	}
	return b.String()
}

// cased applies -l, -u and -c.
func (a attrs) cased(s string) string {
	switch {
	case a&attrLower != 0:
		return strings.ToLower(s)
	case a&attrUpper != 0:
		return strings.ToUpper(s)
	case a&attrCapital != 0:
		r, n := utf8.DecodeRuneInString(s)
		if n > 0 {
			return string(unicode.ToUpper(r)) + strings.ToLower(s[n:])
		}
	}
	return s
}

// isName reports whether s can be the name of a variable.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && s[i] >= '0' && s[i] <= '9' {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
