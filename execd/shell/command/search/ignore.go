package search

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

func newWriter(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }

// ignoreRule is a line of a .gitignore, or a glob of rg's.
type ignoreRule struct {
	dir      string // where the file with the line is
	pattern  string
	negate   bool
	dirOnly  bool
	anchored bool // the pattern is of a path below dir, not of a name
}

// parseIgnore reads a .gitignore.
func parseIgnore(dir, text string) []ignoreRule {
	var rules []ignoreRule
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		r := newRule(line)
		r.dir = dir
		rules = append(rules, r)
	}
	return rules
}

func newRule(line string) ignoreRule {
	r := ignoreRule{}
	line, r.negate = strings.CutPrefix(line, "!")
	line = strings.TrimPrefix(line, `\`)
	line, r.dirOnly = strings.CutSuffix(line, "/")
	line, r.anchored = strings.CutPrefix(line, "/")
	r.anchored = r.anchored || strings.Contains(line, "/")
	r.pattern = line
	return r
}

// globRule reads rg -g: like a line of a .gitignore at the working directory, but "!" leaves out.
func globRule(text string) ignoreRule {
	r := newRule(text)
	r.dir = "."
	return r
}

func (r ignoreRule) match(path string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	below := strings.TrimPrefix(strings.TrimPrefix(path, r.dir), "/")
	if r.dir == "." {
		below = strings.TrimPrefix(path, "./")
	}
	if !r.anchored {
		below = below[strings.LastIndexByte(below, '/')+1:]
	}
	for _, p := range braces(r.pattern) {
		if globPath(p, below) {
			return true
		}
	}
	return false
}

// braces expands the first {a,b} of a pattern.
func braces(pattern string) []string {
	open := strings.IndexByte(pattern, '{')
	end := strings.IndexByte(pattern, '}')
	if open < 0 || end < open {
		return []string{pattern}
	}
	var all []string
	for _, part := range strings.Split(pattern[open+1:end], ",") {
		all = append(all, braces(pattern[:open]+part+pattern[end+1:])...)
	}
	return all
}

// globPath matches element by element; "**" stands for any number of them.
func globPath(pattern, path string) bool {
	return globParts(strings.Split(pattern, "/"), strings.Split(path, "/"))
}

func globParts(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		for i := 0; i <= len(path); i++ {
			if globParts(pattern[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && tool.Glob(pattern[0], path[0], false) && globParts(pattern[1:], path[1:])
}

// ignored says what the last rule that matches says.
func ignored(rules []ignoreRule, path string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].match(path, isDir) {
			return !rules[i].negate
		}
	}
	return false
}

// fileTypes are rg's names for kinds of files: the common ones.
var fileTypes = map[string][]string{
	"c": {"*.c", "*.h", "*.H", "*.cats"}, "cpp": {"*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"},
	"cs": {"*.cs"}, "css": {"*.css", "*.scss"}, "csv": {"*.csv"}, "docker": {"*Dockerfile*"}, "go": {"*.go"},
	"h": {"*.h", "*.hh", "*.hpp"}, "html": {"*.htm", "*.html", "*.ejs"}, "java": {"*.java", "*.jsp", "*.properties"},
	"js": {"*.js", "*.jsx", "*.vue", "*.cjs", "*.mjs"}, "json": {"*.json", "composer.lock"}, "kotlin": {"*.kt", "*.kts"},
	"lua": {"*.lua"}, "make": {"[Mm]akefile*", "*.mk", "*.mak", "GNUmakefile"},
	"markdown": {"*.md", "*.markdown", "*.mdown", "*.mkdn"}, "md": {"*.md", "*.markdown", "*.mdown", "*.mkdn"},
	"php": {"*.php", "*.phtml"}, "proto": {"*.proto"}, "py": {"*.py", "*.pyi"}, "python": {"*.py", "*.pyi"},
	"r": {"*.R", "*.r", "*.Rmd"}, "rb": {"*.rb", "Gemfile", "Rakefile", "*.gemspec"}, "ruby": {"*.rb", "Gemfile", "Rakefile"},
	"rust": {"*.rs"}, "sass": {"*.sass", "*.scss"}, "scala": {"*.scala", "*.sbt"},
	"sh": {"*.sh", "*.bash", "*.zsh", ".bashrc", ".profile"}, "sql": {"*.sql", "*.psql"}, "swift": {"*.swift"},
	"toml": {"*.toml", "Cargo.lock"}, "ts": {"*.ts", "*.tsx", "*.cts", "*.mts"}, "txt": {"*.txt"},
	"xml": {"*.xml", "*.xsd", "*.xsl", "*.svg"}, "yaml": {"*.yaml", "*.yml"}, "zig": {"*.zig"},
}

// listTypes is --type-list, which is all that is done.
func (r *ripper) listTypes() error {
	for _, name := range slices.Sorted(maps.Keys(fileTypes)) {
		_, _ = r.Out.WriteString(name + ": " + strings.Join(fileTypes[name], ", ") + "\n")
	}
	return tool.Exit(0)
}

// addType takes the files of a kind in, or leaves them out.
func (r *ripper) addType(name string, not bool) error {
	patterns, ok := fileTypes[name]
	if !ok {
		return r.Die(2, "unrecognized file type: %s", name)
	}
	for _, p := range patterns {
		if not {
			p = "!" + p
		}
		r.types = append(r.types, p)
	}
	return nil
}

// wanted says whether the kinds that were asked for take a file in.
func (r *ripper) wanted(name string) bool {
	asked, in := false, false
	for _, p := range r.types {
		if glob, not := strings.CutPrefix(p, "!"); not {
			if tool.Glob(glob, name, false) {
				return false
			}
			continue
		}
		asked = true
		in = in || tool.Glob(p, name, false)
	}
	return in || !asked
}
