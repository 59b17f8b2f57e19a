package awk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Special variables, by their index.
const (
	varNR = iota
	varNF
	varFNR
	varFS
	varOFS
	varORS
	varRS
	varFILENAME
	varSUBSEP
	varRSTART
	varRLENGTH
	varCONVFMT
	varOFMT
	varRT
	varIGNORECASE
	varFPAT
	varFIELDWIDTHS
	varCount
)

var specials = map[string]int{
	"NR": varNR, "NF": varNF, "FNR": varFNR, "FS": varFS, "OFS": varOFS, "ORS": varORS, "RS": varRS,
	"FILENAME": varFILENAME, "SUBSEP": varSUBSEP, "RSTART": varRSTART, "RLENGTH": varRLENGTH, "CONVFMT": varCONVFMT,
	"OFMT": varOFMT, "RT": varRT, "IGNORECASE": varIGNORECASE, "FPAT": varFPAT,
	"FIELDWIDTHS": varFIELDWIDTHS,
}

// slot is where a variable lives: a value, an array, or a name for another slot's array.
type slot struct {
	v     value
	array *array
	alias *slot // of a parameter that was given a variable not yet used: becomes an array with it
}

// flow says how a statement was left.
type flow uint8

const (
	flowNone flow = iota
	flowBreak
	flowContinue
	flowNext
	flowNextFile
	flowReturn
	flowExit
)

// maxCalls is how deep functions may call each other.
const maxCalls = 10_000

// interp runs a program.
type interp struct {
	*tool.Call
	ctx     context.Context
	prog    *program
	globals []slot
	vars    [varCount]value
	frame   []slot
	calls   int
	result  value // of return
	status  int

	record  record
	input   source
	files   map[string]*stream
	order   []*stream // of opening
	regexes map[string]*regex.Regexp
	rand    *rand.Rand
	seed    float64
	steps   int
	by      int // which of FS, FPAT and FIELDWIDTHS makes the fields: the one that was set last
}

// runError is what ends a program that did something wrong.
type runError struct{ text string }

func (e runError) Error() string { return e.text }

func fatal(format string, args ...any) error { return runError{fmt.Sprintf(format, args...)} }

var errExit = errors.New("exit")

// tick counts a step.
func (in *interp) tick() error {
	if in.steps++; in.steps%64 != 0 {
		return nil
	}
	return in.Step(in.ctx, 16)
}

func (in *interp) convfmt() string { return in.vars[varCONVFMT].s }

func (in *interp) text(v value) string {
	if v.kind == number {
		return spell(v.n, in.convfmt())
	}
	return v.s
}

func (in *interp) slot(v *variable) *slot {
	if v.scope == local {
		return &in.frame[v.index]
	}
	return &in.globals[v.index]
}

// arrayOf returns the array that a name stands for, making it when the name has not been used.
func (in *interp) arrayOf(v *variable) (*array, error) {
	if v.scope == special {
		return nil, fatal("attempt to use scalar `%s' as an array", v.name)
	}
	s := in.slot(v)
	for s.array == nil && s.alias != nil {
		next := s.alias
		if next.array == nil && next.alias == nil {
			next.array = newArray()
		}
		if next.array != nil {
			s.array = next.array
			break
		}
		s = next
	}
	if s.array == nil {
		if s.v.kind != unset {
			return nil, fatal("attempt to use scalar `%s' as an array", v.name)
		}
		s.array = newArray()
	}
	if top := in.slot(v); top.array == nil {
		top.array = s.array
	}
	return s.array, nil
}

// cellOf returns an element, making it when it is not there.
func (in *interp) cellOf(a *array, key string) (*cell, error) {
	c, ok := a.values[key]
	if ok {
		return c, nil
	}
	c = &cell{}
	a.values[key] = c
	a.keys = append(a.keys, key)
	return c, in.Take(int64(len(key)) + 96)
}

func (in *interp) remove(a *array, key string) error {
	c, ok := a.values[key]
	if !ok {
		return nil
	}
	delete(a.values, key)
	if len(a.keys) > 2*len(a.values)+64 {
		a.list()
	}
	return in.Take(-int64(len(key)+96) - in.weight(c.v))
}

// weight is what a value counts for: only long texts do.
func (in *interp) weight(v value) int64 {
	if len(v.s) < 256 {
		return 0
	}
	return int64(len(v.s))
}

// store puts a value where another one was, counting the memory.
func (in *interp) store(to *value, v value) error {
	delta := in.weight(v) - in.weight(*to)
	*to = v
	if delta == 0 {
		return nil
	}
	return in.Take(delta)
}

func (in *interp) assign(to expr, v value) error {
	switch to := to.(type) {
	case varExpr:
		if to.v.scope == special {
			return in.setSpecial(to.v.index, v)
		}
		s := in.slot(to.v)
		if s.array != nil {
			return fatal("attempt to use array `%s' in a scalar context", to.v.name)
		}
		s.alias = nil
		return in.store(&s.v, v)
	case indexExpr:
		a, err := in.arrayOf(to.array)
		if err != nil {
			return err
		}
		key, err := in.key(to.subs)
		if err != nil {
			return err
		}
		c, err := in.cellOf(a, key)
		if err != nil {
			return err
		}
		return in.store(&c.v, v)
	case fieldExpr:
		i, err := in.fieldNumber(to.index)
		if err != nil {
			return err
		}
		return in.setField(i, in.text(v))
	case groupExpr:
		if len(to.list) == 1 {
			return in.assign(to.list[0], v)
		}
	}
	return fatal("cannot assign to that")
}

// key joins subscripts.
func (in *interp) key(subs []expr) (string, error) {
	if len(subs) == 1 {
		v, err := in.eval(subs[0])
		return in.text(v), err
	}
	var parts []string
	for _, s := range subs {
		v, err := in.eval(s)
		if err != nil {
			return "", err
		}
		parts = append(parts, in.text(v))
	}
	return strings.Join(parts, in.vars[varSUBSEP].s), nil
}

func (in *interp) fieldNumber(x expr) (int, error) {
	v, err := in.eval(x)
	if err != nil {
		return 0, err
	}
	n := v.num()
	if n < 0 {
		return 0, fatal("attempt to access field %d", int(n))
	}
	if n > maxFields {
		return 0, fatal("field number %g is too large", n)
	}
	return int(n), nil
}

func (in *interp) setSpecial(i int, v value) error {
	switch i {
	case varNF:
		in.split()
		return in.setNF(int(max(min(v.num(), maxFields+1), -1)))
	case varFS, varFPAT, varFIELDWIDTHS:
		v = str(in.text(v))
		if i == varFIELDWIDTHS {
			if err := checkWidths(v.s); err != nil {
				return err
			}
		}
		in.by = i
	case varOFS, varORS, varRS, varSUBSEP, varCONVFMT, varOFMT:
		v = str(in.text(v))
	case varIGNORECASE:
		in.regexes = map[string]*regex.Regexp{}
	}
	in.vars[i] = v
	return nil
}

// maxRegexes is how many compiled expressions are kept.
const maxRegexes = 500

// compile returns a compiled expression, from those that were used before if it can.
func (in *interp) compile(source string) (*regex.Regexp, error) {
	if re, ok := in.regexes[source]; ok {
		return re, nil
	}
	re, err := regex.Compile(source, regex.Options{
		Syntax: regex.Awk, Fold: in.vars[varIGNORECASE].truth(),
		Step: func(n int) error { return in.Step(in.ctx, 1+n>>6) },
	})
	if err != nil {
		return nil, fatal("%s: /%s/", err, source)
	}
	if len(in.regexes) >= maxRegexes {
		clear(in.regexes)
	}
	in.regexes[source] = re
	return re, nil
}

// regexOf returns the expression that an argument is: a regular expression itself, or the text of a value.
func (in *interp) regexOf(x expr) (*regex.Regexp, error) {
	if r, ok := x.(regexExpr); ok {
		return in.compile(r.source)
	}
	v, err := in.eval(x)
	if err != nil {
		return nil, err
	}
	return in.compile(in.text(v))
}
