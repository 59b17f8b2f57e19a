package data

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// gojq counts nothing and its functions cannot be stopped. What bounds a program is this:
//
//   - Its machine asks its context whether to go on at every instruction. The context (pulse) counts, and looks at how much
//     memory is in use when a program has run for long enough to have taken it.
//   - What makes a value out of others in one instruction (+, *, a string with values in it, @formats) is rewritten so that
//     the outcome, or the operands, must fit (rewriteQuery, prelude): a program that doubles ends before it hurts.
//   - What takes long in one instruction is done here, and looks at the context: comparing, sorting, and writing a value as
//     text. A value can be very much larger than its memory, since its parts may be one.
const (
	maxText     = 32 << 20  // bytes of a string
	maxElements = 2 << 20   // of an array
	maxGrowth   = 512 << 20 // of the memory in use, by a program that has had time for it

	instructionBytes = 64      // that an instruction takes at most, but for those that must fit
	pulsePeriod      = 1 << 12 // instructions between two looks at the context
	growthPeriod     = 1 << 18 // and between two looks at the memory in use
)

// pulse is the context of a program.
type pulse struct {
	context.Context
	done     <-chan struct{}
	call     *tool.Call
	n        uint64 // instructions
	compared int    // pairs of values
	base     uint64 // memory in use at the beginning
	err      error
}

func newPulse(ctx context.Context, call *tool.Call) *pulse {
	return &pulse{Context: ctx, done: ctx.Done(), call: call, base: memoryInUse()}
}

var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done implements context.Context, and counts an instruction.
func (p *pulse) Done() <-chan struct{} {
	if p.n++; p.n%pulsePeriod == 0 {
		_ = p.look()
	}
	if p.err != nil {
		return over
	}
	return p.done
}

// Err implements context.Context.
func (p *pulse) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.Context.Err()
}

// look counts work and says whether to go on. Once it has given an error it gives that.
func (p *pulse) look() error {
	if p.err != nil {
		return p.err
	}
	p.err = p.call.Step(p.Context, pulsePeriod>>6)
	if p.err == nil && p.n%growthPeriod == 0 && p.n*instructionBytes > maxGrowth && memoryInUse() > p.base+maxGrowth {
		p.err = errors.Join(command.ErrMemory, p.call.Take(maxGrowth)) // which ends the script, where there is a bound
	}
	return p.err
}

// memoryInUse is what the last collection of garbage found in use: by all that this process does, so that it says little of
// one program until it is very much.
func memoryInUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

var errTooLarge = jqError("value is too large")

// comparisons are the functions that stand for operators, and what each says of the order of its operands.
var comparisons = map[gojq.Operator]struct {
	name string
	is   func(order int) bool
}{
	gojq.OpEq: {"_eq", func(o int) bool { return o == 0 }}, gojq.OpNe: {"_ne", func(o int) bool { return o != 0 }},
	gojq.OpLt: {"_lt", func(o int) bool { return o < 0 }}, gojq.OpLe: {"_le", func(o int) bool { return o <= 0 }},
	gojq.OpGt: {"_gt", func(o int) bool { return o > 0 }}, gojq.OpGe: {"_ge", func(o int) bool { return o >= 0 }},
}

// compare is gojq.Compare, but that it looks at the context. It is meaningless once p.err is set.
func (p *pulse) compare(l, r any) int {
	if p.compared++; p.compared%pulsePeriod == 0 {
		_ = p.look()
	}
	switch l := l.(type) {
	case []any:
		if r, ok := r.([]any); ok {
			for i := range min(len(l), len(r)) {
				if order := p.compare(l[i], r[i]); order != 0 || p.err != nil {
					return order
				}
			}
			return cmp.Compare(len(l), len(r))
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			keys := slices.Sorted(maps.Keys(l))
			if order := slices.Compare(keys, slices.Sorted(maps.Keys(r))); order != 0 {
				return order
			}
			for _, k := range keys {
				if order := p.compare(l[k], r[k]); order != 0 || p.err != nil {
					return order
				}
			}
			return 0
		}
	}
	return gojq.Compare(l, r)
}

// bounds are the functions that hold a program to them.
func (p *pulse) bounds() []gojq.CompilerOption {
	var out []gojq.CompilerOption
	for _, c := range comparisons {
		out = append(out, gojq.WithFunction(c.name, 2, 2, func(_ any, args []any) any {
			order := p.compare(args[0], args[1])
			if p.err != nil {
				return p.err
			}
			return c.is(order)
		}))
	}
	return append(out,
		gojq.WithFunction("_negative", 0, 0, func(any, []any) any { return jqError("flatten depth must not be negative") }),
		gojq.WithFunction("_fit", 0, 0, func(v any, _ []any) any { return fit(v) }),
		gojq.WithFunction("_product", 2, 2, func(_ any, args []any) any { return product(args[0], args[1]) }),
		gojq.WithFunction("_sum", 1, 1, func(v any, args []any) any { return sum(v, args[0]) }),
		gojq.WithFunction("_sorted", 1, 1, func(v any, args []any) any { return p.sorted(v, args[0], asList) }),
		gojq.WithFunction("_grouped", 1, 1, func(v any, args []any) any { return p.sorted(v, args[0], asGroups) }),
		gojq.WithFunction("_distinct", 1, 1, func(v any, args []any) any { return p.sorted(v, args[0], asDistinct) }),
	)
}

// fit returns a value, or an error when it is larger than one may get.
func fit(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > maxText {
			return errTooLarge
		}
	case []any:
		if len(v) > maxElements {
			return errTooLarge
		}
	}
	return v
}

// product says whether a string may be repeated so often.
func product(x, y any) any {
	text, ok := x.(string)
	if !ok {
		text, ok = y.(string)
		y = x
	}
	if n, number := gojq.ToFloat64(y); ok && number && n*float64(len(text)) > maxText {
		return errTooLarge
	}
	return nil
}

// sum returns v, or an error when its elements are too much together, with a text between each two.
func sum(v, between any) any {
	total, count := 0, 0
	add := func(e any) {
		count++
		switch e := e.(type) {
		case string:
			total += len(e)
		case []any:
			total += len(e) * (maxText / maxElements)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			add(e)
		}
	case map[string]any:
		for _, e := range v {
			add(e)
		}
	}
	text, _ := between.(string)
	if total > maxText || len(text) > 0 && count > maxText/len(text) {
		return errTooLarge
	}
	return v
}

// keyed is a value with what it is sorted by.
type keyed struct{ key, value any }

// sorted sorts an array by the keys of its elements, stably, and returns what shape makes of it.
func (p *pulse) sorted(v, keys any, shape func(*pulse, []keyed) []any) any {
	list, ok := v.([]any)
	by, okBy := keys.([]any)
	if !ok || !okBy || len(list) != len(by) {
		return jqErrorf("%s (%s) cannot be sorted, as it is not an array", gojq.TypeOf(v), gojq.Preview(v))
	}
	items := make([]keyed, len(list))
	for i := range list {
		items[i] = keyed{by[i], list[i]}
	}
	slices.SortStableFunc(items, func(x, y keyed) int {
		if p.err != nil {
			return 0
		}
		return p.compare(x.key, y.key)
	})
	out := shape(p, items)
	if p.err != nil {
		return p.err
	}
	return out
}

func asList(_ *pulse, items []keyed) []any {
	out := make([]any, len(items))
	for i, it := range items {
		out[i] = it.value
	}
	return out
}

func asGroups(p *pulse, items []keyed) []any {
	out := []any{}
	for i, it := range items {
		if i > 0 && p.compare(items[i-1].key, it.key) == 0 {
			out[len(out)-1] = append(out[len(out)-1].([]any), it.value)
		} else {
			out = append(out, []any{it.value})
		}
	}
	return out
}

func asDistinct(p *pulse, items []keyed) []any {
	out := []any{}
	for i, it := range items {
		if i == 0 || p.compare(items[i-1].key, it.key) != 0 {
			out = append(out, it.value)
		}
	}
	return out
}

// rewriteQuery makes what an operator gives fit.
func rewriteQuery(q *gojq.Query) {
	defs := q.FuncDefs
	if c, ok := comparisons[q.Op]; ok {
		*q = gojq.Query{Meta: q.Meta, Imports: q.Imports, FuncDefs: defs, Term: &gojq.Term{
			Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: c.name, Args: []*gojq.Query{q.Left, q.Right}},
		}}
		return
	}
	switch q.Op {
	case gojq.OpAdd:
		sum := &gojq.Query{Left: q.Left, Op: gojq.OpAdd, Right: q.Right}
		*q = gojq.Query{Meta: q.Meta, Imports: q.Imports, FuncDefs: defs, Left: sum, Op: gojq.OpPipe, Right: function("_fit")}
	case gojq.OpMul:
		*q = gojq.Query{Meta: q.Meta, Imports: q.Imports, FuncDefs: defs, Term: &gojq.Term{
			Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "_times", Args: []*gojq.Query{q.Left, q.Right}},
		}}
	case gojq.OpUpdateAdd, gojq.OpUpdateMul:
		name := map[gojq.Operator]string{gojq.OpUpdateAdd: "_plus_update", gojq.OpUpdateMul: "_times_update"}[q.Op]
		*q = gojq.Query{Meta: q.Meta, Imports: q.Imports, FuncDefs: defs, Term: &gojq.Term{
			Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: []*gojq.Query{q.Left, q.Right}},
		}}
	}
}

// grows says whether a term makes a string out of values.
func grows(t *gojq.Term) bool {
	return t.Type == gojq.TermTypeFormat || t.Type == gojq.TermTypeString && t.Str != nil && len(t.Str.Queries) > 0
}

// boundPrelude redefines what makes large values of small ones, or takes long over them.
const boundPrelude = `
def _times(f; g): g as $r | f as $l | _product($l; $r) as $_ | $l * $r;
def _plus_update(f; g): g as $x | f |= (. + $x | _fit);
def _times_update(f; g): g as $x | f |= _times(.; $x);
def _add: add;
def add: _sum("") | _add;
def add(f): [f] | add;
def _join($x): join($x);
def join($x): _sum($x) | _join($x);
def _flat($d): .[] | if type == "array" and $d > 0 then _flat($d - 1) else . end;
def flatten: [_flat(infinite)];
def flatten($d): if $d < 0 then _negative else [_flat($d)] end;
def sort: _sorted(.);
def sort_by(f): _sorted(map([f]));
def group_by(f): _grouped(map([f]));
def unique: _distinct(.);
def unique_by(f): _distinct(map([f]));
`

// boundedBuilder is what a value is written into as text.
type boundedBuilder struct{ strings.Builder }

// Write implements io.Writer.
func (b *boundedBuilder) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxText {
		return 0, errTooLarge
	}
	return b.Builder.Write(p)
}
