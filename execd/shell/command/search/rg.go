package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var rgOptions = getopt.New("A:B:C:E:FHILM:NPST:Uabcd:e:f:g:hij:lm:noqr:st:uvwxz0.p", "after-context:=A", "before-context:=B",
	"context:=C", "encoding:=E", "fixed-strings=F", "with-filename=H", "no-filename=I", "follow=L", "no-line-number=N",
	"pcre2=P", "smart-case=S", "type-not:=T", "multiline=U", "text=a", "byte-offset=b", "count=c", "max-depth:=d",
	"regexp:=e", "file:=f", "glob:=g", "iglob:=iglob", "ignore-case=i", "threads:=j", "files-with-matches=l",
	"max-count:=m", "line-number=n", "only-matching=o", "quiet=q", "replace:=r", "case-sensitive=s", "type:=t",
	"unrestricted=u", "multiline-dotall", "no-multiline", "invert-match=v", "word-regexp=w", "line-regexp=x", "null=0", "hidden=.", "files",
	"files-without-match", "count-matches", "no-ignore", "no-ignore-vcs=no-ignore", "no-heading", "heading", "color:",
	"colors:", "column", "vimgrep", "sort:", "sortr:", "no-messages", "max-columns:=M", "pretty=p", "include-zero",
	"line-buffered", "no-config", "trim", "passthru", "passthrough=passthru", "null-data", "type-list", "max-filesize:", "no-hidden",
	"context-separator:", "no-context-separator", "max-columns-preview", "no-ignore-global", "no-ignore-exclude", "no-pcre2",
	"sort-files", "no-sort-files", "no-require-git", "one-file-system", "mmap", "no-mmap", "no-ignore-messages")

// ripper is what one rg looks for.
type ripper struct {
	*tool.Call
	scan     scan
	patterns []string
	options  regex.Options
	fixed    bool
	dotAll   bool   // . matches the end of a line, with -U
	largest  uint64 // bytes of a file that is searched; 0 for any
	smart    bool
	hidden   bool
	noIgnore bool
	follow   bool
	listing  bool // --files
	heading  bool
	depth    int
	names    int8
	globs    []ignoreRule
	types    []string
	matched  bool
	failed   bool
	reverse  bool
}

func rg(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(rgOptions, 2)
	if err != nil {
		return err
	}
	r := &ripper{Call: c, depth: 1 << 30, scan: scan{max: -1, end: '\n'}, options: regex.Options{Syntax: regex.Perl}}
	given := false
	for _, o := range options {
		given = given || o.Name == "e" || o.Name == "f"
		if err := r.set(ctx, o); err != nil {
			return err
		}
	}
	if !given && !r.listing {
		if len(operands) == 0 {
			return c.Die(2, "the following required arguments were not provided:\n    <PATTERN>")
		}
		r.patterns, operands = operands[:1], operands[1:]
	}
	if err := r.compile(ctx); err != nil {
		return err
	}
	err = r.run(ctx, operands)
	var done stop
	if err != nil && !errors.As(err, &done) {
		return err
	}
	switch {
	case r.failed && !(r.matched && r.scan.quiet):
		return tool.Exit(2)
	case !r.matched:
		return tool.Exit(1)
	}
	return nil
}

func (r *ripper) set(ctx context.Context, o getopt.Option) error {
	s := &r.scan
	switch o.Name {
	case "e":
		r.patterns = append(r.patterns, o.Value)
	case "f":
		data, err := r.ReadFile(ctx, o.Value)
		if err != nil {
			return r.Die(2, "%s: %s", o.Value, err)
		}
		r.patterns = append(r.patterns, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
	case "F":
		r.fixed = true
	case "S":
		r.smart = true
	case "i":
		r.options.Fold, r.smart = true, false
	case "s":
		r.options.Fold, r.smart = false, false
	case "w":
		r.options.Word = true
	case "x":
		r.options.Whole = true
	case "H":
		r.names = 1
	case "I":
		r.names = -1
	case ".":
		r.hidden = true
	case "no-ignore":
		r.noIgnore = true
	case "u":
		r.hidden, r.noIgnore = r.noIgnore, true
	case "L":
		r.follow = true
	case "files":
		r.listing = true
	case "heading":
		r.heading = true
	case "p":
		r.heading, s.number = true, true
	case "g", "iglob":
		r.globs = append(r.globs, globRule(o.Value))
	case "t", "T":
		return r.addType(o.Value, o.Name == "T")
	case "v":
		s.invert = true
	case "sort", "sortr":
		if o.Value != "path" && o.Value != "none" {
			return r.Die(2, "sorting by '%s' is not supported", o.Value)
		}
		r.reverse = o.Name == "sortr"
	case "multiline-dotall":
		r.dotAll = true
	case "max-filesize":
		n, ok := sizeOf(o.Value)
		if !ok {
			return r.Die(2, "invalid value '%s' for '--max-filesize'", o.Value)
		}
		r.largest = n
	case "type-list":
		return r.listTypes()
	default:
		return r.setOutput(o)
	}
	return nil
}

func (r *ripper) setOutput(o getopt.Option) error {
	s := &r.scan
	switch o.Name {
	case "A", "B", "C", "m", "d", "M":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return r.Die(2, "invalid value '%s' for '-%s'", o.Value, o.Name)
		}
		switch o.Name {
		case "A":
			s.after = n
		case "B":
			s.before = n
		case "C":
			s.after, s.before = n, n
		case "m":
			s.max = n
		case "d":
			r.depth = n
		case "M":
			s.widest = n
		}
	case "n":
		s.number = true
	case "N":
		s.number = false
	case "o":
		s.only = true
	case "c":
		s.count = true
	case "count-matches":
		s.count, s.each = true, true
	case "include-zero":
		s.zero = true
	case "context-separator":
		s.between, s.joined = o.Value, false
	case "no-context-separator":
		s.joined = true
	case "l":
		s.list = 'l'
	case "files-without-match":
		s.list = 'L'
	case "q":
		s.quiet = true
	case "r":
		s.replace = []byte(o.Value)
	case "b":
		s.offset = true
	case "0":
		s.null = true
	case "a":
		s.binary = 't'
	case "U":
		s.across = true
	case "no-multiline":
		s.across = false
	case "trim":
		s.trim = true
	case "passthru":
		s.pass = true
	case "max-columns-preview":
		s.preview = true
	case "column":
		s.column, s.number = true, true
	case "vimgrep":
		s.column, s.number, r.names = true, true, 1
	case "null-data":
		s.end = 0
	case "color":
		s.color = o.Value == "always"
	case "line-buffered":
		s.flush = true
	}
	return nil
}

func (r *ripper) compile(ctx context.Context) error {
	if r.smart && !slices.ContainsFunc(r.patterns, func(p string) bool { return strings.ContainsFunc(p, unicode.IsUpper) }) {
		r.options.Fold = true
	}
	r.options.Step = func(n int) error { return r.Step(ctx, 1+n>>6) }
	r.scan.Call, r.scan.ctx = r.Call, ctx
	if r.listing {
		return nil
	}
	r.options.Multi = r.scan.across
	if r.scan.across && r.scan.replace != nil {
		return r.Die(2, "--replace is not supported with --multiline")
	}
	if r.scan.across && r.dotAll && !r.fixed {
		for i, p := range r.patterns {
			r.patterns[i] = "(?s)" + p
		}
	}
	var err error
	if r.fixed {
		r.scan.re, err = regex.CompileLiterals(r.patterns, r.options)
	} else {
		r.scan.re, err = regex.CompileAny(r.patterns, r.options)
	}
	if err != nil {
		return r.Die(2, "regex parse error: %s", err)
	}
	return nil
}

// piped says whether something is connected to a command's standard input that only it can be meant to read: a pipe of
// the script, or a file.
func piped(in io.Reader) bool {
	switch in := in.(type) {
	case *treepath.File, *io.PipeReader:
		return true
	case interface{ IsPipe() bool }:
		return in.IsPipe()
	}
	return false
}

// run searches the operands; without any, the working directory.
func (r *ripper) run(ctx context.Context, operands []string) error {
	plain := len(operands) == 0
	if plain {
		operands = []string{"."}
		if piped(r.Stdin) && !r.listing {
			operands = []string{"-"}
		}
	}
	isDir := func(name string) bool {
		a, err := r.FS.Stat(ctx, name)
		return err == nil && a.Type == vfs.TypeDir
	}
	r.scan.named = r.names > 0 || r.names == 0 && (len(operands) > 1 || operands[0] != "-" && isDir(operands[0]))
	for _, name := range operands {
		switch {
		case name == "-":
			if err := r.search(r.Standard(ctx), "<stdin>"); err != nil {
				return err
			}
		case isDir(name):
			shown := name
			if plain {
				shown = ""
			}
			if err := r.walk(ctx, name, shown, nil, 1); err != nil {
				return err
			}
		default:
			if err := r.file(ctx, name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *ripper) file(ctx context.Context, path, shown string) error {
	if r.listing {
		r.matched = true
		_, err := r.Out.WriteString(shown + map[bool]string{true: "\x00", false: "\n"}[r.scan.null])
		return err
	}
	if r.largest > 0 {
		if a, err := r.FS.Stat(ctx, path); err == nil && a.Size > r.largest {
			return nil
		}
	}
	in, err := r.Open(ctx, path)
	if err != nil {
		if tool.Ends(ctx, err) {
			return err
		}
		r.failed = true
		number := map[bool]string{true: " (os error 2)"}[errors.Is(err, vfs.ErrNotExist)]
		fmt.Fprintf(r.Stderr, "%s: %s%s\n", shown, command.Reason(err), number)
		return nil
	}
	defer in.Close()
	return r.search(in, shown)
}

func (r *ripper) search(in *tool.Input, shown string) error {
	if r.heading && !r.scan.count && r.scan.list == 0 {
		return r.withHeading(in, shown)
	}
	matched, err := r.scan.run(in, shown)
	r.matched = r.matched || matched
	if matched && r.scan.quiet && err == nil {
		return stop{}
	}
	return err
}

// withHeading prints the file's name once above its lines. They are few enough to look at: they are held until it is
// known that there are any.
func (r *ripper) withHeading(in *tool.Input, shown string) error {
	var held strings.Builder
	if err := r.Out.Flush(); err != nil {
		return err
	}
	out, named := r.scan.Call, r.scan.named
	inner := *r.Call
	inner.Out = newWriter(&held)
	r.scan.Call, r.scan.named = &inner, false
	matched, err := r.scan.run(in, shown)
	_ = inner.Out.Flush()
	r.scan.Call, r.scan.named = out, named
	if matched {
		if r.matched {
			_ = r.Out.WriteByte('\n')
		}
		if named {
			_, _ = r.Out.WriteString(shown + "\n")
		}
		_, _ = r.Out.WriteString(held.String())
	}
	r.matched = r.matched || matched
	return err
}

// walk goes through a directory, leaving out what is hidden or ignored.
func (r *ripper) walk(ctx context.Context, dir, shown string, rules []ignoreRule, depth int) error {
	entries, err := r.FS.ReadDir(ctx, dir)
	if err != nil {
		r.failed = true
		return r.FaultAt(ctx, dir, err)
	}
	if err := r.Step(ctx, 1+len(entries)); err != nil {
		return err
	}
	if !r.noIgnore {
		for _, name := range []string{".gitignore", ".ignore", ".rgignore"} {
			if data, err := r.FS.ReadFile(ctx, join(dir, name), 1<<20); err == nil {
				rules = append(rules[:len(rules):len(rules)], parseIgnore(dir, string(data))...)
			}
		}
	}
	if r.reverse {
		slices.Reverse(entries)
	}
	for _, e := range entries {
		at, name := join(dir, e.Name), e.Name
		if shown != "" {
			name = join(shown, e.Name)
		}
		if err := r.entry(ctx, e, at, name, rules, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *ripper) entry(ctx context.Context, e vfs.Dirent, at, name string, rules []ignoreRule, depth int) error {
	kind := e.Type
	if kind == vfs.TypeSymlink {
		if !r.follow {
			return nil
		}
		a, err := r.FS.Stat(ctx, at)
		if err != nil {
			return nil
		}
		kind = a.Type
	}
	isDir := kind == vfs.TypeDir
	switch verdict := r.verdict(e.Name, at, isDir); {
	case verdict < 0:
		return nil
	case verdict > 0 && !isDir:
	case !r.hidden && strings.HasPrefix(e.Name, "."), ignored(rules, at, isDir):
		return nil
	}
	if isDir {
		if e.Name == ".git" && !r.noIgnore || depth >= r.depth {
			return nil
		}
		return r.walk(ctx, at, name, rules, depth+1)
	}
	if kind != vfs.TypeRegular || !r.wanted(e.Name) {
		return nil
	}
	return r.file(ctx, at, name)
}

// verdict is what the globs say: 1 wanted, -1 not, 0 nothing. Globs that want something leave all else out.
func (r *ripper) verdict(name, path string, isDir bool) int {
	wants := false
	for i := len(r.globs) - 1; i >= 0; i-- {
		g := r.globs[i]
		wants = wants || !g.negate
		if g.match(path, isDir) {
			if g.negate {
				return -1
			}
			return 1
		}
	}
	if wants && !isDir {
		return -1
	}
	return 0
}

// sizeOf reads a size as --max-filesize has it: a number of bytes, or of K, M or G.
func sizeOf(text string) (uint64, bool) {
	shift := 0
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMG", text[n-1]); i >= 0 {
			shift, text = 10*(i+1), text[:n-1]
		}
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return n << shift, err == nil
}
