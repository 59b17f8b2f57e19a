package basic

import (
	"context"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var basenameOptions = getopt.New("+as:z", "multiple=a", "suffix:=s", "zero=z")

func basename(_ context.Context, c *tool.Call) error {
	options, names, err := c.Options(basenameOptions, 1)
	if err != nil {
		return err
	}
	many, suffix, end := false, "", "\n"
	for _, o := range options {
		switch o.Name {
		case "a":
			many = true
		case "s":
			many, suffix = true, o.Value
		case "z":
			end = "\x00"
		}
	}
	switch {
	case len(names) == 0:
		return c.Usage(1, "missing operand")
	case !many && len(names) > 2:
		return c.Usage(1, "extra operand '%s'", names[2])
	case !many && len(names) == 2:
		names, suffix = names[:1], names[1]
	}
	for _, name := range names {
		_, _ = c.Out.WriteString(baseOf(name, suffix) + end)
	}
	return nil
}

func baseOf(name, suffix string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		return name[:min(1, len(name))]
	}
	base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]
	if base != suffix {
		base = strings.TrimSuffix(base, suffix)
	}
	return base
}

var dirnameOptions = getopt.New("z", "zero=z")

func dirname(_ context.Context, c *tool.Call) error {
	options, names, err := c.Options(dirnameOptions, 1)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return c.Usage(1, "missing operand")
	}
	end := "\n"
	if len(options) > 0 {
		end = "\x00"
	}
	for _, name := range names {
		_, _ = c.Out.WriteString(dirOf(name) + end)
	}
	return nil
}

func dirOf(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" && name != "" {
		return "/"
	}
	i := strings.LastIndexByte(trimmed, '/')
	if i < 0 {
		return "."
	}
	if dir := strings.TrimRight(trimmed[:i], "/"); dir != "" {
		return dir
	}
	return "/"
}

var pwdOptions = getopt.New("LP", "logical=L", "physical=P")

func pwd(ctx context.Context, c *tool.Call) error {
	options, _, err := c.Options(pwdOptions, 1)
	if err != nil {
		return err
	}
	dir := c.Dir
	if len(options) == 0 || options[len(options)-1].Name == "P" {
		if real, err := c.FS.RealPath(ctx, c.Dir); err == nil {
			dir = real
		}
	}
	_, err = c.Out.WriteString(dir + "\n")
	return err
}
