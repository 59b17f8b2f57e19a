package data

import (
	"cmp"
	"slices"
	"strings"
)

// maxShapes bounds how many shapes of objects, and how many keys, are remembered.
const maxShapes = 10_000

// order knows in which order keys are to be printed.
type order struct {
	shapes  map[string][]string // sorted keys, joined, to keys in order
	seen    map[string]int      // where a key was first seen in the input
	program string
	sorted  bool         // -S
	step    func() error // whether to go on, see printer
}

func newOrder(program string, sorted bool) *order {
	return &order{shapes: map[string][]string{}, seen: map[string]int{}, program: program, sorted: sorted}
}

func shapeOf(keys []string) string {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return strings.Join(sorted, "\x00")
}

// learn remembers the keys of an object that was read.
func (o *order) learn(keys []string) {
	if len(keys) == 0 || len(o.shapes) >= maxShapes || len(keys) > maxShapes {
		return
	}
	for _, k := range keys {
		if _, ok := o.seen[k]; !ok && len(o.seen) < maxShapes {
			o.seen[k] = len(o.seen)
		}
	}
	shape := shapeOf(keys)
	if _, ok := o.shapes[shape]; !ok {
		o.shapes[shape] = slices.Clone(keys)
	}
}

// keys returns the keys of an object in the order in which they are printed.
func (o *order) keys(object map[string]any) []string {
	keys := make([]string, 0, len(object))
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if o.sorted || len(keys) < 2 {
		return keys
	}
	if known, ok := o.shapes[strings.Join(keys, "\x00")]; ok {
		return known
	}
	at := make(map[string]int, len(keys))
	inProgram := true
	for _, k := range keys {
		at[k] = o.inProgram(k)
		inProgram = inProgram && at[k] >= 0
	}
	if !inProgram {
		for _, k := range keys {
			if i, ok := o.seen[k]; ok {
				at[k] = i
			} else if at[k] >= 0 {
				at[k] += maxShapes
			} else {
				at[k] = 1 << 30
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	return keys
}

// inProgram returns where a key stands in the program as a key, else as any word, else -1.
func (o *order) inProgram(key string) int {
	word := -1
	for from := 0; ; {
		i := strings.Index(o.program[from:], key)
		if i < 0 {
			return word
		}
		i += from
		end := i + len(key)
		if (i == 0 || !wordByte(o.program[i-1])) && (end == len(o.program) || !wordByte(o.program[end])) {
			rest := strings.TrimLeft(strings.TrimPrefix(o.program[end:], `"`), " \t\n")
			if strings.HasPrefix(rest, ":") {
				return i
			}
			if word < 0 {
				word = i
			}
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
