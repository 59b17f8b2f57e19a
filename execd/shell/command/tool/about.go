package tool

import (
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
)

// likeness is what a command that is not of coreutils behaves like.
var likeness = map[string]string{
	"sed": "GNU sed) 4.9", "grep": "GNU grep) 3.8", "egrep": "GNU grep) 3.8", "fgrep": "GNU grep) 3.8", "tar": "GNU tar) 1.34",
	"diff": "GNU diffutils) 3.8", "cmp": "GNU diffutils) 3.8", "patch": "GNU patch) 2.7.6", "find": "GNU findutils) 4.9.0",
	"xargs": "GNU findutils) 4.9.0", "gzip": "GNU gzip) 1.12", "gunzip": "GNU gzip) 1.12", "zcat": "GNU gzip) 1.12",
	"awk": "GNU Awk) 5.2.1", "gawk": "GNU Awk) 5.2.1", "mawk": "GNU Awk) 5.2.1", "rg": "ripgrep) 13.0.0", "xz": "XZ Utils) 5.4.1", "zstd": "Zstandard) 1.5.4", "column": "util-linux) 2.38.1",
	"rev": "util-linux) 2.38.1", "envsubst": "GNU gettext-runtime) 0.21", "strings": "GNU Binutils) 2.40",
}

// About answers --help and --version, which the parser's error says were given, with an Exit; nil for any other error.
func (c *Call) About(p *getopt.Parser, err error) error {
	switch {
	case errors.Is(err, getopt.ErrHelp):
		return c.help(p)
	case errors.Is(err, getopt.ErrVersion):
		return c.version()
	}
	return nil
}

// help prints the options of a command, which ends it well.
func (c *Call) help(p *getopt.Parser) error {
	fmt.Fprintf(c.Out, "Usage: %s [OPTION]... [ARGUMENT]...\n\nOptions, which mean what they mean in the tool of this name:\n%s", c.Args[0], p.Summary())
	return Exit(0)
}

// version says which tool a command behaves like, in the form in which scripts look for that; it is none of that tool.
func (c *Call) version() error {
	like, ok := likeness[c.Name]
	if !ok {
		like = "GNU coreutils) 9.1"
	}
	fmt.Fprintf(c.Out, "%s (%s\nThis is not that program but one of Carrel's that behaves like it.\n", c.Name, like)
	return Exit(0)
}
