package basic

import (
	"context"
	"regexp"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var envsubstOptions = getopt.New("v", "variables=v")

var reference = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})`)

// envsubst replaces $NAME and ${NAME}: all of them, or those that the argument names.
func envsubst(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(envsubstOptions, 1)
	if err != nil {
		return err
	}
	var only map[string]bool
	if len(operands) > 0 {
		only = map[string]bool{}
		for _, m := range reference.FindAllStringSubmatch(operands[0], -1) {
			only[m[1]+m[2]] = true
			if len(options) > 0 {
				_, _ = c.Out.WriteString(m[1] + m[2] + "\n")
			}
		}
	}
	if len(options) > 0 {
		return nil
	}
	lines := c.Lines(c.Standard(ctx))
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		_, err := c.Out.Write(reference.ReplaceAllFunc(line, func(m []byte) []byte {
			parts := reference.FindSubmatch(m)
			name := string(parts[1]) + string(parts[2])
			if only != nil && !only[name] {
				return m
			}
			value, _ := c.Getenv(name)
			return []byte(value)
		}))
		if lines.Whole() {
			err = c.Out.WriteByte('\n')
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}
