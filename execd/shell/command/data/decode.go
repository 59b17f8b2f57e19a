package data

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"strings"
)

// maxNesting bounds how deep documents are nested.
const maxNesting = 10_000

var errNesting = error(jqError("Exceeds depth limit for parsing"))

// decoder reads JSON texts one after another, learning the order of keys.
type decoder struct {
	json  *json.Decoder
	order *order
	depth int
	step  func() error
}

func newDecoder(r io.Reader, o *order, step func() error) *decoder {
	d := &decoder{json: json.NewDecoder(r), order: o, step: step}
	d.json.UseNumber()
	return d
}

// next returns the next value, io.EOF after the last.
func (d *decoder) next() (any, error) {
	tok, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	return d.value(tok)
}

func (d *decoder) value(tok json.Token) (any, error) {
	switch tok := tok.(type) {
	case json.Delim:
		if d.depth++; d.depth > maxNesting {
			return nil, errNesting
		}
		defer func() { d.depth-- }()
		if err := d.step(); err != nil {
			return nil, err
		}
		if tok == '{' {
			return d.object()
		}
		return d.array()
	case json.Number:
		return number(tok.String()), nil
	}
	return tok, nil
}

func (d *decoder) inside() (json.Token, error) {
	tok, err := d.json.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return tok, err
}

func (d *decoder) object() (any, error) {
	object := map[string]any{}
	var keys []string
	for {
		tok, err := d.inside()
		if err != nil {
			return nil, err
		}
		if tok == json.Delim('}') {
			d.order.learn(keys)
			return object, nil
		}
		key, ok := tok.(string)
		if !ok {
			return nil, jqError("Object keys must be strings")
		}
		if tok, err = d.inside(); err != nil {
			return nil, err
		}
		v, err := d.value(tok)
		if err != nil {
			return nil, err
		}
		if _, there := object[key]; !there {
			keys = append(keys, key)
		}
		object[key] = v
	}
}

func (d *decoder) array() (any, error) {
	array := []any{}
	for {
		tok, err := d.inside()
		if err != nil {
			return nil, err
		}
		if tok == json.Delim(']') {
			return array, nil
		}
		v, err := d.value(tok)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
}

// number makes of digits what gojq calculates with.
func number(text string) any {
	if !strings.ContainsAny(text, ".eE") {
		if n, ok := new(big.Int).SetString(text, 10); ok {
			if n.IsInt64() {
				if i := n.Int64(); i >= math.MinInt && i <= math.MaxInt {
					return int(i)
				}
			}
			return n
		}
	}
	f, err := json.Number(text).Float64()
	if err != nil && math.IsInf(f, 0) {
		return math.Copysign(math.MaxFloat64, f)
	}
	return f
}
