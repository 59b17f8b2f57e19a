package shell

import (
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// fieldNames appends what a field comes to: the names that it matches when it is a pattern, else its text.
func (sh *shell) fieldNames(out []string, f field) []string {
	if sh.on(optNoglob) || !f.mayMatch() {
		return append(out, f.text())
	}
	pat := patternText(f)
	if !isPattern(pat) {
		return append(out, f.text())
	}
	names := sh.glob(pat)
	switch {
	case len(names) > 0:
		return append(out, names...)
	case sh.shopt(optFailglob):
		sh.fatalf("no match: %s", f.text())
	case sh.shopt(optNullglob):
		return out
	}
	return append(out, f.text())
}

func (f field) mayMatch() bool {
	for _, p := range f {
		if p.kind != quoted && strings.ContainsAny(p.text, "*?[(") {
			return true
		}
	}
	return false
}

// isPattern reports whether anything in a pattern is more than text.
func isPattern(pat string) bool {
	for i := 0; i < len(pat); i++ {
		switch pat[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.IndexByte(pat[i+1:], ']') >= 0 {
				return true
			}
		case '+', '@', '!':
			if i+1 < len(pat) && pat[i+1] == '(' {
				return true
			}
		}
	}
	return false
}

// globber finds the names that match one pattern.
type globber struct {
	sh     *shell
	names  []string
	fold   bool
	dot    bool
	ignore [][]*pattern // of $GLOBIGNORE, by directory
}

// glob returns the paths that match, sorted.
func (sh *shell) glob(pat string) []string {
	g := &globber{sh: sh, fold: sh.shopt(optNocaseglob), dot: sh.shopt(optDotglob)}
	if s, ok := sh.get("GLOBIGNORE"); ok && s != "" {
		g.dot = true
		for _, p := range splitPatterns(s) {
			var parts []*pattern
			for _, part := range strings.Split(p, "/") {
				parts = append(parts, sh.compile(part, false))
			}
			g.ignore = append(g.ignore, parts)
		}
	}
	dir := ""
	for strings.HasPrefix(pat, "/") {
		dir, pat = dir+"/", pat[1:]
	}
	g.walk(dir, cutSlashes(pat))
	slices.Sort(g.names)
	return slices.Compact(g.names)
}

// splitPatterns cuts $GLOBIGNORE at its colons, but not at those in a set.
func splitPatterns(s string) (out []string) {
	from := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			if _, n := parseSet(s[i:], false); n > 0 {
				i += n - 1
			}
		case ':':
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// cutSlashes cuts a pattern into those of its directories. Slashes within a set or group have no say.
func cutSlashes(pat string) []string {
	return strings.Split(pat, "/")
}

// matchPath matches a path directory by directory: no pattern matches a slash.
func (sh *shell) matchPath(parts []*pattern, path string) bool {
	names := strings.Split(path, "/")
	if len(names) != len(parts) {
		return false
	}
	for i, p := range parts {
		if !p.match(sh, names[i]) {
			return false
		}
	}
	return true
}

func (g *globber) add(path string) {
	if len(g.names) >= maxGlobMatches {
		g.sh.fatalf("pathname expansion: too many names")
	}
	for _, p := range g.ignore {
		if g.sh.matchPath(p, path) {
			return
		}
	}
	if g.ignore != nil {
		if base := path[strings.LastIndexByte(path, '/')+1:]; base == "." || base == ".." {
			return
		}
	}
	g.names = append(g.names, path)
}

// walk matches what is left of a pattern below dir, which ends in a slash or is empty.
func (g *globber) walk(dir string, rest []string) {
	g.sh.step()
	part, last := rest[0], len(rest) == 1
	switch {
	case part == "" && last: // the pattern ends in a slash: dir is there, and is a directory
		if dir != "" {
			g.add(dir)
		}
		return
	case part == "":
		g.walk(dir+"/", rest[1:])
		return
	case part == "**" && g.sh.shopt(optGlobstar):
		g.deep(dir, rest[1:])
		return
	case !isPattern(part):
		g.plain(dir, unescapePattern(part), rest)
		return
	}
	pat := g.sh.compile(part, g.fold)
	for _, e := range g.list(dir, part) {
		if !pat.match(g.sh, e.Name) {
			continue
		}
		if last {
			g.add(dir + e.Name)
		} else if g.isDir(dir+e.Name, e) {
			g.walk(dir+e.Name+"/", rest[1:])
		}
	}
}

// plain goes on through a name that is no pattern.
func (g *globber) plain(dir, name string, rest []string) {
	a, err := g.sh.fs().Lstat(g.sh.ctx, dir+name)
	if err != nil {
		return
	}
	if len(rest) == 1 {
		g.add(dir + name)
		return
	}
	if g.isDir(dir+name, vfs.Dirent{Type: a.Type}) {
		g.walk(dir+name+"/", rest[1:])
	}
}

// deep is **: dir and all directories below it, but not through symlinks. At the end it stands for files too.
func (g *globber) deep(dir string, rest []string) {
	g.sh.step()
	for len(rest) > 0 && rest[0] == "**" {
		rest = rest[1:]
	}
	if len(rest) > 0 {
		g.walk(dir, rest)
	} else if dir != "" {
		g.add(dir)
	}
	for _, e := range g.list(dir, "*") {
		switch {
		case e.Type == vfs.TypeDir:
			g.deepBelow(dir+e.Name, rest)
		case len(rest) == 0:
			g.add(dir + e.Name)
		}
	}
}

func (g *globber) deepBelow(dir string, rest []string) {
	if len(rest) == 0 {
		g.add(dir)
		g.deepList(dir + "/")
		return
	}
	g.deep(dir+"/", rest)
}

func (g *globber) deepList(dir string) {
	g.sh.step()
	for _, e := range g.list(dir, "*") {
		g.add(dir + e.Name)
		if e.Type == vfs.TypeDir {
			g.deepList(dir + e.Name + "/")
		}
	}
}

func (g *globber) isDir(path string, e vfs.Dirent) bool {
	if e.Type != vfs.TypeSymlink {
		return e.Type == vfs.TypeDir
	}
	a, err := g.sh.fs().Stat(g.sh.ctx, path)
	return err == nil && a.Type == vfs.TypeDir
}

// list returns the entries of a directory that a pattern may match: hidden ones only when it starts with a dot.
func (g *globber) list(dir, part string) []vfs.Dirent {
	path := dir
	if path == "" {
		path = "."
	}
	entries, err := g.sh.fs().ReadDir(g.sh.ctx, path)
	if err != nil {
		return nil
	}
	hidden := startsWithDot(part)
	if hidden && !g.sh.shopt(optGlobskipdots) {
		entries = append([]vfs.Dirent{{Name: ".", Type: vfs.TypeDir}, {Name: "..", Type: vfs.TypeDir}}, entries...)
	}
	if hidden || g.dot {
		return entries
	}
	return slices.DeleteFunc(entries, func(e vfs.Dirent) bool { return strings.HasPrefix(e.Name, ".") })
}

// startsWithDot reports whether a pattern's first character is a dot, be it in a group.
func startsWithDot(part string) bool {
	if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "\\.") {
		return true
	}
	if len(part) > 2 && part[1] == '(' && strings.IndexByte("?*+@", part[0]) >= 0 {
		return strings.HasPrefix(part[2:], ".") || strings.Contains(part, "|.") || strings.Contains(part, "|\\.")
	}
	return false
}

func unescapePattern(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
