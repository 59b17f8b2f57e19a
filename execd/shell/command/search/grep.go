package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var grepOptions = getopt.New("A:B:C:D:EFGHILPRTUVXZabcd:e:f:hilm:noqrsuvwxyz0123456789", "after-context:=A",
	"basic-regexp=G", "before-context:=B", "binary-files:", "byte-offset=b", "color::", "colour::=color", "context:=C",
	"count=c", "devices:=D", "directories:=d", "exclude:", "exclude-dir:", "exclude-from:", "extended-regexp=E", "file:=f",
	"files-with-matches=l", "files-without-match=L", "fixed-strings=F", "ignore-case=i", "no-ignore-case",
	"include:", "initial-tab=T", "invert-match=v", "label:", "line-buffered", "line-number=n", "line-regexp=x",
	"max-count:=m", "no-filename=h", "no-messages=s", "null=Z", "null-data=z", "only-matching=o", "perl-regexp=P",
	"quiet=q", "recursive=r", "dereference-recursive=R", "regexp:=e", "silent=q", "text=a", "with-filename=H",
	"word-regexp=w", "unix-byte-offsets=u", "binary=U", "group-separator:", "no-group-separator")

// grepper is what one grep looks for and shows.
type grepper struct {
	*tool.Call
	scan                          scan
	patterns                      []string
	kind                          byte // E, F, G or P
	options                       regex.Options
	recursive                     byte // r, R or 0
	skipDirs                      bool
	silent                        bool
	include, exclude, excludeDirs []string
	label                         string
	names                         int8 // -1 never, 1 always
	failed                        bool
	matched                       bool
}

func grep(ctx context.Context, c *tool.Call) error {
	options, operands, err := grepOptions.Parse(c.Args[1:])
	if slices.ContainsFunc(options, func(o getopt.Option) bool { return o.Name == "V" }) {
		err = getopt.ErrVersion
	}
	if about := c.About(grepOptions, err); about != nil {
		return about
	}
	if err != nil {
		c.Say("%s", err)
		return usage(c)
	}
	g := &grepper{Call: c, kind: 'G', label: "(standard input)", scan: scan{max: -1, end: '\n', zero: true}}
	switch c.Name {
	case "egrep":
		g.kind = 'E'
	case "fgrep":
		g.kind = 'F'
	}
	given := false
	for _, o := range options {
		given = given || o.Name == "e" || o.Name == "f"
		if err := g.set(ctx, o); err != nil {
			return err
		}
	}
	if !given {
		if len(operands) == 0 {
			return usage(c)
		}
		g.patterns, operands = strings.Split(operands[0], "\n"), operands[1:]
	}
	if err := g.compile(ctx); err != nil {
		return err
	}
	err = g.files(ctx, operands)
	var done stop
	if err != nil && !errors.As(err, &done) {
		return err
	}
	switch {
	case g.matched && (!g.failed || g.scan.quiet):
		return nil
	case g.failed:
		return tool.Exit(2)
	}
	return tool.Exit(1)
}

func usage(c *tool.Call) error {
	fmt.Fprintf(c.Stderr, "Usage: %s [OPTION]... PATTERNS [FILE]...\nTry '%[1]s --help' for more information.\n", c.Name)
	return tool.Exit(2)
}

// stop ends the whole search: the answer is known.
type stop struct{}

func (stop) Error() string { return "found" }

func (g *grepper) set(ctx context.Context, o getopt.Option) error {
	s := &g.scan
	switch o.Name {
	case "E", "F", "G", "P":
		g.kind = o.Name[0]
	case "e":
		g.patterns = append(g.patterns, strings.Split(o.Value, "\n")...)
	case "f":
		return g.patternFile(ctx, o.Value)
	case "i", "y":
		g.options.Fold = true
	case "no-ignore-case":
		g.options.Fold = false
	case "w":
		g.options.Word = true
	case "x":
		g.options.Whole = true
	case "v":
		s.invert = true
	case "c":
		s.count = true
	case "l":
		s.list = 'l'
	case "L":
		s.list = 'L'
	case "o":
		s.only = true
	case "q":
		s.quiet = true
	case "s":
		g.silent = true
	case "n":
		s.number = true
	case "b":
		s.offset = true
	case "H":
		g.names = 1
	case "h":
		g.names = -1
	case "Z":
		s.null = true
	case "z":
		s.end = 0
	case "a":
		s.binary = 't'
	case "I":
		s.binary = 'w'
	case "T":
		s.tab = true
	case "r", "R":
		g.recursive = o.Name[0]
	default:
		return g.setLong(ctx, o)
	}
	return nil
}

func (g *grepper) setLong(ctx context.Context, o getopt.Option) error {
	s := &g.scan
	switch o.Name {
	case "A", "B", "C", "m":
		n, err := strconv.Atoi(o.Value)
		if errors.Is(err, strconv.ErrRange) {
			n, err = min(max(n, -1), math.MaxInt32), nil // as good as without end
		}
		if o.Name == "m" {
			n = max(n, -1)
		}
		if err != nil || n < 0 && o.Name != "m" {
			if o.Name == "m" {
				return g.Die(2, "invalid max count")
			}
			return g.Die(2, "%s: invalid context length argument", o.Value)
		}
		s.context = s.context || o.Name != "m"
		switch o.Name {
		case "A":
			s.after = n
		case "B":
			s.before = n
		case "C":
			s.after, s.before = n, n
		case "m":
			s.max = n
		}
	case "binary-files":
		kind, ok := map[string]byte{"text": 't', "without-match": 'w', "binary": 0}[o.Value]
		if !ok {
			return g.Die(2, "unknown binary-files type")
		}
		s.binary = kind
	case "d":
		switch o.Value {
		case "recurse":
			g.recursive = 'r'
		case "skip":
			g.skipDirs = true
		}
	case "include":
		g.include = append(g.include, o.Value)
	case "exclude":
		g.exclude = append(g.exclude, o.Value)
	case "exclude-dir":
		g.excludeDirs = append(g.excludeDirs, strings.TrimRight(o.Value, "/"))
	case "exclude-from":
		data, err := g.ReadFile(ctx, o.Value)
		if err != nil {
			return g.Die(2, "%s: %s", o.Value, command.Reason(err))
		}
		g.exclude = append(g.exclude, strings.Fields(string(data))...)
	case "group-separator":
		s.between, s.joined = o.Value, false
	case "no-group-separator":
		s.joined = true
	case "label":
		g.label = o.Value
	case "color":
		s.color = o.Value == "always"
	case "line-buffered":
		s.flush = true
	default:
		if len(o.Name) == 1 && o.Name[0] >= '0' && o.Name[0] <= '9' {
			s.after = s.after*10 + int(o.Name[0]-'0')
			s.before = s.after
		}
	}
	return nil
}

func (g *grepper) patternFile(ctx context.Context, name string) error {
	data, err := g.ReadFile(ctx, name)
	if err != nil {
		return g.Die(2, "%s: %s", name, command.Reason(err))
	}
	if text := strings.TrimSuffix(string(data), "\n"); len(data) > 0 {
		g.patterns = append(g.patterns, strings.Split(text, "\n")...)
	}
	return nil
}

func (g *grepper) compile(ctx context.Context) error {
	g.options.Step = func(n int) error { return g.Step(ctx, 1+n>>6) }
	g.scan.Call, g.scan.ctx = g.Call, ctx
	if len(g.patterns) == 0 {
		g.scan.never = true
		return nil
	}
	var err error
	if g.kind != 'F' && slices.ContainsFunc(g.patterns, bareClass) {
		if g.kind == 'P' {
			return g.Die(2, "POSIX named classes are supported only within a class")
		}
		return g.Die(2, "character class syntax is [[:space:]], not [:space:]")
	}
	switch g.kind {
	case 'F':
		g.scan.re, err = regex.CompileLiterals(g.patterns, g.options)
	case 'E':
		g.options.Syntax = regex.Extended
	case 'P':
		g.options.Syntax = regex.Perl
	}
	if g.kind != 'F' {
		g.scan.re, err = regex.CompileAny(g.patterns, g.options)
	}
	if err != nil {
		return g.Die(2, "%s", err)
	}
	return nil
}

// bareClass reports whether a pattern has a class outside of brackets, as in [:space:]: it would match the letters of the
// name, which nobody means.
func bareClass(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == '[':
			j := i + 1
			if j < len(pattern) && pattern[j] == '^' {
				j++
			}
			start := j
			colon := j < len(pattern) && pattern[j] == ':'
			for first := true; j < len(pattern) && (pattern[j] != ']' || first); first = false {
				if pattern[j] == '[' && j+1 < len(pattern) && strings.IndexByte(":.=", pattern[j+1]) >= 0 {
					if end := strings.Index(pattern[j+2:], pattern[j+1:j+2]+"]"); end >= 0 {
						j += end + 3
					}
				}
				j++
			}
			if colon && j < len(pattern) && j > start+1 && pattern[j-1] == ':' {
				return true
			}
			i = j
		}
	}
	return false
}

func (g *grepper) files(ctx context.Context, operands []string) error {
	g.scan.named = g.names > 0 || g.names == 0 && (len(operands) > 1 || g.recursive != 0 && (len(operands) == 0 || operands[0] != "-"))
	if g.scan.never && !g.scan.invert && g.scan.list != 'L' {
		return nil // nothing can match: GNU's does not even look
	}
	if len(operands) == 0 {
		if g.recursive != 0 {
			return g.walk(ctx, ".", "", true)
		}
		operands = []string{"-"}
	}
	for _, name := range operands {
		if err := g.operand(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (g *grepper) operand(ctx context.Context, name string) error {
	if name == "-" {
		return g.input(g.Standard(ctx), g.label)
	}
	a, err := g.FS.Stat(ctx, name)
	switch {
	case err != nil:
		return g.fault(ctx, name, err)
	case a.Type == vfs.TypeDir && g.recursive != 0:
		return g.walk(ctx, name, name, true)
	case a.Type == vfs.TypeDir && g.skipDirs:
		return nil
	case a.Type == vfs.TypeDir:
		if !g.silent {
			g.Say("%s: Is a directory", name)
		}
		g.failed = true
		return nil
	case g.excluded(name):
		return nil
	}
	return g.file(ctx, name)
}

// excluded says whether --include and --exclude leave a file out.
func (g *grepper) excluded(name string) bool {
	base := path.Base(name)
	matches := func(patterns []string) bool {
		for _, p := range patterns {
			if tool.Glob(p, base, false) || tool.Glob(p, name, false) {
				return true
			}
		}
		return false
	}
	return matches(g.exclude) || g.include != nil && !matches(g.include)
}

func (g *grepper) fault(ctx context.Context, name string, err error) error {
	if tool.Ends(ctx, err) {
		return err
	}
	g.failed = true
	if !g.silent {
		g.Say("%s: %s", name, command.Reason(err))
	}
	return nil
}

func (g *grepper) file(ctx context.Context, name string) error {
	in, err := g.Open(ctx, name)
	if err != nil {
		return g.fault(ctx, name, err)
	}
	defer in.Close()
	err = g.input(in, name)
	var done stop
	if err != nil && !errors.As(err, &done) {
		return g.fault(ctx, name, err)
	}
	return err
}

func (g *grepper) input(in *tool.Input, name string) error {
	matched, err := g.scan.run(in, name)
	g.matched = g.matched || matched
	if matched && g.scan.quiet && err == nil {
		return stop{}
	}
	return err
}

// walk searches a directory and all below it. shown is how names begin in the output.
func (g *grepper) walk(ctx context.Context, dir, shown string, operand bool) error {
	if operand && dir != "." {
		for _, p := range g.excludeDirs {
			if tool.Glob(p, path.Base(dir), false) {
				return nil
			}
		}
	}
	entries, err := g.FS.ReadDir(ctx, dir)
	if err != nil {
		return g.fault(ctx, dir, err)
	}
	for _, e := range entries {
		at, name := join(dir, e.Name), e.Name
		if shown != "" {
			name = join(shown, e.Name)
		}
		if err := g.entry(ctx, e, at, name); err != nil {
			return err
		}
	}
	return nil
}

func (g *grepper) entry(ctx context.Context, e vfs.Dirent, at, name string) error {
	kind := e.Type
	if kind == vfs.TypeSymlink {
		if g.recursive == 'r' {
			return nil
		}
		a, err := g.FS.Stat(ctx, at)
		if err != nil {
			return g.fault(ctx, name, err)
		}
		kind = a.Type
	}
	switch {
	case kind == vfs.TypeDir:
		for _, p := range g.excludeDirs {
			if tool.Glob(p, e.Name, false) {
				return nil
			}
		}
		return g.walk(ctx, at, name, false)
	case kind != vfs.TypeRegular || g.excluded(name):
		return nil
	}
	return g.file(ctx, name)
}

func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
