package git

import (
	"bufio"
	"bytes"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// attributeRule is a line of .gitattributes: what it says of files that a pattern matches.
type attributeRule struct {
	dir     string // below which it counts
	pattern string
	values  map[string]string // "true" for one that is set, "false" for one that is unset, "" for neither
}

// attributes are what .gitattributes says of files, read directory by directory as they are asked for.
type attributes struct {
	g     *call
	rules map[string][]attributeRule // by directory
}

// of returns an attribute of a file; "" when nothing is said of it. The deepest directory counts, and there the last line,
// but what the repository says for itself before all.
func (a *attributes) of(name, attribute string) (string, error) {
	dirs := []string{gitInfo}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == "." {
			break
		}
	}
	for _, dir := range dirs {
		rules, err := a.read(dir)
		if err != nil {
			return "", err
		}
		for i := len(rules) - 1; i >= 0; i-- {
			if v, ok := rules[i].values[attribute]; ok && rules[i].matches(name) {
				return v, nil
			}
		}
	}
	return "", nil
}

// gitInfo stands for the file of the repository itself.
const gitInfo = "//info"

func (a *attributes) read(dir string) ([]attributeRule, error) {
	if rules, ok := a.rules[dir]; ok {
		return rules, nil
	}
	file, below := path.Join(a.g.root, dir, ".gitattributes"), dir
	if dir == gitInfo {
		file, below = path.Join(a.g.dir, "info/attributes"), "."
	} else if at, err := a.g.lstat(path.Join(dir, ".gitattributes"), nil); notThere(err) || err == nil && at.Type != vfs.TypeRegular {
		a.rules[dir] = nil
		return nil, nil
	}
	b, err := a.g.FS.ReadFile(a.g.ctx, file, maxConfig)
	if err != nil && !notThere(err) {
		return nil, err
	}
	var rules []attributeRule
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, maxConfig)
	for in.Scan() {
		if r, ok := parseAttributes(in.Text(), below); ok {
			rules = append(rules, r)
		}
	}
	a.rules[dir] = rules
	return rules, in.Err()
}

// forget has the rules of a directory read again, which were written.
func (a *attributes) forget(name string) {
	if a != nil && path.Base(name) == ".gitattributes" {
		delete(a.rules, path.Dir(name))
	}
}

// parseAttributes reads a line. The macro binary is the one that there is.
func parseAttributes(line, dir string) (attributeRule, bool) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0][0] == '#' || words[0][0] == '!' || words[0][0] == '[' {
		return attributeRule{}, false
	}
	r := attributeRule{dir, strings.Trim(words[0], `"`), map[string]string{}}
	for _, w := range words[1:] {
		name, value, valued := strings.Cut(w, "=")
		switch {
		case valued:
			r.values[name] = value
		case w == "binary":
			r.values["text"], r.values["diff"], r.values["merge"], r.values["binary"] = "false", "false", "false", "true"
		case w[0] == '-':
			r.values[w[1:]] = "false"
		case w[0] == '!':
			r.values[w[1:]] = ""
		default:
			r.values[w] = "true"
		}
	}
	return r, true
}

// braces are what only doublestar takes for more than themselves.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

// matches says whether a rule is about a file: by its name when the pattern has no slash, else by its path.
func (r attributeRule) matches(name string) bool {
	if r.dir != "." {
		name = strings.TrimPrefix(name, r.dir+"/")
	}
	pattern := strings.TrimPrefix(r.pattern, "/")
	if pattern == r.pattern && !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, err := doublestar.Match(braces.Replace(pattern), name)
	return ok && err == nil
}
