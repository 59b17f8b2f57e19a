package awk

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// builtin is a function of the language.
type builtin struct {
	least, most int
	run         func(in *interp, args []expr) (value, error)
}

var builtins map[string]*builtin

func init() {
	builtins = map[string]*builtin{
		"length": {0, 1, length}, "substr": {2, 3, substr}, "index": {2, 2, index}, "split": {2, 4, split},
		"sub": {2, 3, sub}, "gsub": {2, 3, gsub}, "gensub": {3, 4, gensub}, "match": {2, 3, match},
		"sprintf": {1, 1 << 20, sprintf}, "tolower": {1, 1, texts(strings.ToLower)}, "toupper": {1, 1, texts(strings.ToUpper)},
		"sin": {1, 1, maths(math.Sin)}, "cos": {1, 1, maths(math.Cos)}, "exp": {1, 1, maths(math.Exp)},
		"log": {1, 1, maths(math.Log)}, "sqrt": {1, 1, maths(math.Sqrt)}, "int": {1, 1, maths(math.Trunc)},
		"atan2": {2, 2, atan2}, "rand": {0, 0, random}, "srand": {0, 1, srand}, "system": {1, 1, system},
		"close": {1, 2, closeNamed}, "fflush": {0, 1, fflush}, "strftime": {0, 3, strftime}, "systime": {0, 0, systime},
		"mktime": {1, 2, mktime}, "strtonum": {1, 1, strtonum}, "asort": {1, 3, asort(false)}, "asorti": {1, 3, asort(true)},
		"and":     {2, 1 << 10, bits(func(a, b uint64) uint64 { return a & b })},
		"or":      {2, 1 << 10, bits(func(a, b uint64) uint64 { return a | b })},
		"xor":     {2, 1 << 10, bits(func(a, b uint64) uint64 { return a ^ b })},
		"lshift":  {2, 2, bits(func(a, b uint64) uint64 { return a << min(b, 64) })},
		"rshift":  {2, 2, bits(func(a, b uint64) uint64 { return a >> min(b, 64) })},
		"compl":   {1, 1, maths(func(x float64) float64 { return float64(^uint64(x) & (1<<53 - 1)) })},
		"isarray": {1, 1, isArray}, "typeof": {1, 1, typeOf},
	}
}

func maths(f func(float64) float64) func(*interp, []expr) (value, error) {
	return func(in *interp, args []expr) (value, error) {
		v, err := in.eval(args[0])
		return num(f(v.num())), err
	}
}

func texts(f func(string) string) func(*interp, []expr) (value, error) {
	return func(in *interp, args []expr) (value, error) {
		s, err := in.argText(args[0])
		return str(f(s)), err
	}
}

func bits(f func(a, b uint64) uint64) func(*interp, []expr) (value, error) {
	return func(in *interp, args []expr) (value, error) {
		var out uint64
		for i, arg := range args {
			v, err := in.eval(arg)
			if err != nil {
				return v, err
			}
			if n := v.num(); n < 0 {
				return v, fatal("negative values are not allowed in bit functions")
			} else if i == 0 {
				out = uint64(n)
			} else {
				out = f(out, uint64(n))
			}
		}
		return num(float64(out)), nil
	}
}

func (in *interp) argText(x expr) (string, error) {
	v, err := in.eval(x)
	return in.text(v), err
}

func (in *interp) argNum(x expr) (float64, error) {
	v, err := in.eval(x)
	return v.num(), err
}

// arrayArg returns the array that an argument names.
func (in *interp) arrayArg(x expr) (*array, error) {
	v, ok := x.(varExpr)
	if !ok {
		return nil, fatal("argument is not an array")
	}
	return in.arrayOf(v.v)
}

func length(in *interp, args []expr) (value, error) {
	if len(args) == 0 {
		return num(float64(utf8.RuneCountInString(in.whole()))), nil
	}
	if v, ok := args[0].(varExpr); ok && v.v.scope != special {
		s := in.slot(v.v)
		if s.array == nil && s.alias != nil {
			s.array = s.alias.array
		}
		if s.array != nil {
			return num(float64(len(s.array.values))), nil
		}
	}
	s, err := in.argText(args[0])
	return num(float64(utf8.RuneCountInString(s))), err
}

func substr(in *interp, args []expr) (value, error) {
	s, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	at, err := in.argNum(args[1])
	if err != nil {
		return value{}, err
	}
	from := math.RoundToEven(at)
	to := math.Inf(1)
	if len(args) > 2 {
		n, err := in.argNum(args[2])
		if err != nil {
			return value{}, err
		}
		to = from + math.RoundToEven(n)
	}
	if math.IsNaN(from) || math.IsNaN(to) {
		return str(""), nil
	}
	size := float64(len(s))
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		from, to = max(from, 1), min(to, size+1)
		if from >= to {
			return str(""), nil
		}
		return str(s[int(from)-1 : int(to)-1]), nil
	}
	runes := []rune(s)
	from, to = max(from, 1), min(to, float64(len(runes)+1))
	if from >= to {
		return str(""), nil
	}
	return str(string(runes[int(from)-1 : int(to)-1])), nil
}

func index(in *interp, args []expr) (value, error) {
	s, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	t, err := in.argText(args[1])
	i := strings.Index(s, t)
	if i < 0 || err != nil {
		return num(0), err
	}
	return num(float64(utf8.RuneCountInString(s[:i]) + 1)), nil
}

// fill makes the elements of an array 1, 2, 3...
func (in *interp) fill(a *array, parts []string) error {
	for _, key := range a.list() {
		if err := in.remove(a, key); err != nil {
			return err
		}
	}
	for i, part := range parts {
		c, err := in.cellOf(a, strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		if err := in.store(&c.v, input(part)); err != nil {
			return err
		}
	}
	return nil
}

func split(in *interp, args []expr) (value, error) {
	s, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	a, err := in.arrayArg(args[1])
	if err != nil {
		return value{}, err
	}
	var parts, seps []string
	switch {
	case len(args) < 3:
		parts = in.splitInto(nil, s, in.vars[varFS].s)
	default:
		if r, ok := args[2].(regexExpr); ok {
			if s != "" {
				parts = in.splitRegex(nil, &seps, s, r.source)
			}
			break
		}
		fs, err := in.argText(args[2])
		if err != nil {
			return value{}, err
		}
		if len(args) > 3 && fs != " " && fs != "" && s != "" {
			source := fs
			if utf8.RuneCountInString(fs) == 1 {
				source = `\` + fs
			}
			parts = in.splitRegex(nil, &seps, s, source)
		} else {
			parts = in.splitInto(nil, s, fs)
		}
	}
	if len(args) > 3 {
		b, err := in.arrayArg(args[3])
		if err != nil {
			return value{}, err
		}
		if err := in.fill(b, seps); err != nil {
			return value{}, err
		}
	}
	return num(float64(len(parts))), in.fill(a, parts)
}

func atan2(in *interp, args []expr) (value, error) {
	y, err := in.argNum(args[0])
	if err != nil {
		return value{}, err
	}
	x, err := in.argNum(args[1])
	return num(math.Atan2(y, x)), err
}

func random(in *interp, _ []expr) (value, error) { return num(in.rand.Float64()), nil }

func srand(in *interp, args []expr) (value, error) {
	old := in.seed
	in.seed = float64(in.Now().Unix())
	if len(args) > 0 {
		n, err := in.argNum(args[0])
		if err != nil {
			return value{}, err
		}
		in.seed = n
	}
	in.rand = rand.New(rand.NewPCG(math.Float64bits(in.seed), 0))
	return num(old), nil
}

func system(in *interp, args []expr) (value, error) {
	source, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	status, err := in.start(source, in.Stdin, in.Stdout)
	return num(float64(status)), err
}

func closeNamed(in *interp, args []expr) (value, error) {
	name, err := in.argText(args[0])
	if err != nil {
		return value{}, err
	}
	result := -1.0
	for _, kind := range []string{"w", "|", "<r", "|r"} {
		s, ok := in.files[kind+name]
		if !ok {
			continue
		}
		delete(in.files, kind+name)
		status, err := in.closeStream(s)
		if err != nil {
			return value{}, err
		}
		result = float64(status)
	}
	return num(result), nil
}

func fflush(in *interp, _ []expr) (value, error) { return num(0), in.flush() }

func strtonum(in *interp, args []expr) (value, error) {
	v, err := in.eval(args[0])
	if err != nil {
		return v, err
	}
	if v.kind == number {
		return v, nil
	}
	s := strings.TrimSpace(v.s)
	if strings.HasPrefix(s, "0") && len(s) > 1 && !strings.ContainsAny(s, ".eE") || strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		n, _ := strconv.ParseInt(s, 0, 64) // what cannot be read is zero
		return num(float64(n)), nil
	}
	return num(v.num()), nil
}

// sort sorts a slice stably. It looks at the context now and then, and calls all elements equal once that has ended.
func (in *interp) sort(slice any, less func(i, j int) bool) error {
	n, err := 0, error(nil)
	sort.SliceStable(slice, func(i, j int) bool {
		if n++; n&1023 == 0 && err == nil {
			err = in.Step(in.ctx, 64)
		}
		return err == nil && less(i, j)
	})
	return err
}

func asort(byIndex bool) func(*interp, []expr) (value, error) {
	return func(in *interp, args []expr) (value, error) {
		a, err := in.arrayArg(args[0])
		if err != nil {
			return value{}, err
		}
		to := a
		if len(args) > 1 {
			if to, err = in.arrayArg(args[1]); err != nil {
				return value{}, err
			}
		}
		var values []value
		for _, key := range a.list() {
			if byIndex {
				values = append(values, str(key))
			} else {
				values = append(values, a.values[key].v)
			}
		}
		err = in.sort(values, func(i, j int) bool { return sortOrder(values[i], values[j], in.convfmt()) < 0 })
		if err != nil {
			return value{}, err
		}
		if err := in.fill(to, nil); err != nil {
			return value{}, err
		}
		for i, v := range values {
			c, err := in.cellOf(to, strconv.Itoa(i+1))
			if err != nil {
				return value{}, err
			}
			c.v = v
		}
		return num(float64(len(values))), nil
	}
}

// sortOrder puts numbers before texts.
func sortOrder(a, b value, format string) int {
	a, b = a.settle(), b.settle()
	x, y := a.kind == text, b.kind == text
	if x != y {
		if y {
			return -1
		}
		return 1
	}
	return compare(a, b, format)
}

func isArray(in *interp, args []expr) (value, error) {
	v, ok := args[0].(varExpr)
	return boolean(ok && v.v.scope != special && in.slot(v.v).array != nil), nil
}

func typeOf(in *interp, args []expr) (value, error) {
	if ok, _ := isArray(in, args); ok.n != 0 {
		return str("array"), nil
	}
	v, err := in.eval(args[0])
	switch v.settle().kind {
	case number:
		return str("number"), err
	case numeric:
		return str("strnum"), err
	case text:
		return str("string"), err
	}
	return str("untyped"), err
}
