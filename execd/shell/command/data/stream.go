package data

import "slices"

// events appends what --stream makes of a value: [path, leaf] for each leaf, and [path] of the last element after all of an
// array's or object's.
func (o *order) events(out []any, path []any, v any) []any {
	sub := func(key, e any, last bool) {
		at := append(slices.Clip(path), key)
		out = o.events(out, at, e)
		if last {
			out = append(out, []any{at})
		}
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			sub(i, e, i == len(v)-1)
		}
		if len(v) > 0 {
			return out
		}
	case map[string]any:
		keys := o.keys(v)
		for i, k := range keys {
			sub(k, v[k], i == len(keys)-1)
		}
		if len(keys) > 0 {
			return out
		}
	}
	return append(out, []any{slices.Clip(append([]any{}, path...)), v})
}
