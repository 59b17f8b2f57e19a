package data

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what aliases may make of a document.
const maxNodes = 1 << 20

// yamlReader reads YAML documents into gojq's values, learning the order of keys.
type yamlReader struct {
	decoder *yaml.Decoder
	order   *order
	nodes   int
}

func newYAMLReader(r io.Reader, o *order) *yamlReader {
	return &yamlReader{decoder: yaml.NewDecoder(r), order: o}
}

// next returns the next document, io.EOF after the last.
func (y *yamlReader) next() (any, error) {
	var n yaml.Node
	if err := y.decoder.Decode(&n); err != nil {
		return nil, err
	}
	return y.value(&n, 0)
}

var errAliases = errors.New("document is too large")

func (y *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if y.nodes++; y.nodes > maxNodes || depth > maxNesting {
		return nil, errAliases
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return y.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return y.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := []any{}
		for _, e := range n.Content {
			v, err := y.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return y.mapping(n, depth)
	}
	return scalar(n)
}

func (y *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	object := map[string]any{}
	var keys []string
	set := func(k string, v any) {
		if _, there := object[k]; !there {
			keys = append(keys, k)
		}
		object[k] = v
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := y.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if n.Content[i].Tag == "!!merge" {
			merged, _ := v.(map[string]any)
			for _, k := range y.order.keys(merged) {
				if _, there := object[k]; !there {
					set(k, merged[k])
				}
			}
			continue
		}
		set(n.Content[i].Value, v)
	}
	y.order.learn(keys)
	return object, nil
}

func scalar(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case int64:
		return int(v), nil
	case uint64:
		return number(strconv.FormatUint(v, 10)), nil
	case nil, bool, int, float64, string:
		return v, nil
	}
	return n.Value, nil
}

// yamlNode makes a node of a value, keys in their order.
func yamlNode(v any, o *order) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, k := range o.keys(v) {
			n.Content = append(n.Content, textNode(k), yamlNode(v[k], o))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, e := range v {
			n.Content = append(n.Content, yamlNode(e, o))
		}
		return n
	case string:
		return textNode(v)
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	}
	text := numberText(v)
	if strings.ContainsAny(text, ".e") {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}
}

// textNode lets the library decide on quotes.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// yamlText writes one document.
func yamlText(v any, o *order, indent int) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(indent)
	if err := e.Encode(yamlNode(v, o)); err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return b.String(), e.Close()
}
