package data

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/itchyny/gojq"
)

// prelude redefines what depends on the order of keys by what knows it.
const prelude = `
def keys_unsorted: [_keys];
def to_entries: [_keys as $k | {key: $k, value: .[$k]}];
def with_entries(f): to_entries | map(f) | from_entries;
def recurse: def r: ., (.[]? | r); r;
def paths: path(..) | select(length > 0);
def paths(f): path(.. | select(f)) | select(length > 0);
def tojson: _tojson;
def tostring: if type == "string" then . else _tojson end;
`

// parse reads a program and rewrites its iterations: .[] becomes .[_keys], where _keys gives the keys of an object in their
// order.
func parse(program string) (*gojq.Query, error) {
	query, err := gojq.Parse(program)
	if err != nil {
		return nil, err
	}
	bounds, err := gojq.Parse(boundPrelude + ".")
	if err != nil {
		return nil, err
	}
	before, err := gojq.Parse(prelude + ".")
	if err != nil {
		return nil, err
	}
	rewrite(reflect.ValueOf(query))
	rewrite(reflect.ValueOf(before))
	query.FuncDefs = slices.Concat(bounds.FuncDefs, before.FuncDefs, query.FuncDefs)
	return query, nil
}

// rewrite changes every term and operator below v.
func rewrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		rewrite(v.Elem())
		switch at := v.Interface().(type) {
		case *gojq.Term:
			rewriteTerm(at)
		case *gojq.Query:
			rewriteQuery(at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewrite(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewrite(v.Field(i))
			}
		}
	}
}

func function(name string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name}}}
}

// rewriteTerm turns T[]S into (T | .[_keys])S, ".." into a call of recurse, and makes what a string gives fit.
func rewriteTerm(t *gojq.Term) {
	if grows(t) {
		text := *t
		text.SuffixList = nil
		*t = gojq.Term{
			Type:       gojq.TermTypeQuery,
			Query:      &gojq.Query{Left: &gojq.Query{Term: &text}, Op: gojq.OpPipe, Right: function("_fit")},
			SuffixList: t.SuffixList,
		}
	}
	if t.Type == gojq.TermTypeRecurse {
		t.Type, t.Func = gojq.TermTypeFunc, &gojq.Func{Name: "recurse"}
	}
	for i := 0; i < len(t.SuffixList); i++ {
		if !t.SuffixList[i].Iter {
			continue
		}
		head := *t
		head.SuffixList = t.SuffixList[:i:i]
		each := &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Index: &gojq.Index{Start: function("_keys")}}}}
		*t = gojq.Term{
			Type:       gojq.TermTypeQuery,
			Query:      &gojq.Query{Left: &gojq.Query{Term: &head}, Op: gojq.OpPipe, Right: &gojq.Query{Term: each}},
			SuffixList: t.SuffixList[i+1:],
		}
		i = -1
	}
}

// functions are what the prelude and the rewritten terms call.
func (o *order) functions() []gojq.CompilerOption {
	return []gojq.CompilerOption{
		gojq.WithIterFunction("_keys", 0, 0, func(v any, _ []any) gojq.Iter {
			switch v := v.(type) {
			case map[string]any:
				keys := make([]any, 0, len(v))
				for _, k := range o.keys(v) {
					keys = append(keys, k)
				}
				return gojq.NewIter(keys...)
			case []any:
				keys := make([]any, len(v))
				for i := range v {
					keys[i] = i
				}
				return gojq.NewIter(keys...)
			}
			return gojq.NewIter[any](cannotIterate(v))
		}),
		gojq.WithFunction("_tojson", 0, 0, func(v any, _ []any) any {
			var b boundedBuilder
			p := printer{w: bufWriter(&b), order: o, step: o.step}
			p.print(v, 0)
			if err := p.end(); err != nil {
				return err
			}
			return b.String()
		}),
	}
}

func cannotIterate(v any) error {
	switch v := v.(type) {
	case nil:
		return jqError("Cannot iterate over null")
	case string:
		return jqErrorf("Cannot iterate over string (%s)", quote(v, false))
	case bool:
		return jqErrorf("Cannot iterate over boolean (%t)", v)
	case json.Number:
		return jqErrorf("Cannot iterate over number (%s)", v)
	}
	return jqErrorf("Cannot iterate over number (%s)", numberText(v))
}

// jqError is an error in jq's words.
type jqError string

func (e jqError) Error() string { return string(e) }

func jqErrorf(format string, args ...any) error { return jqError(fmt.Sprintf(format, args...)) }
