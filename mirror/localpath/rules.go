package localpath

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Rules say which paths are local.
type Rules struct {
	matcher  gitignore.Matcher
	anchored bool // some pattern says where in the tree: then paths are needed, else names are enough
}

// ParseRules reads patterns as lines of a .gitignore in the root. ErrInvalid for one that can match nothing.
func ParseRules(lines []string) (*Rules, error) {
	r := new(Rules)
	var patterns []gitignore.Pattern
	for _, line := range lines {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		bare := strings.TrimSuffix(strings.TrimPrefix(line, "!"), "/")
		for _, part := range strings.Split(bare, "/") {
			if _, err := filepath.Match(part, ""); err != nil || bare == "" {
				return nil, fmt.Errorf("pattern %q: %w", line, vfs.ErrInvalid)
			}
		}
		r.anchored = r.anchored || strings.Contains(bare, "/")
		patterns = append(patterns, gitignore.ParsePattern(line, nil))
	}
	r.matcher = gitignore.NewMatcher(patterns)
	return r, nil
}

// match reports whether a path is local.
func (r *Rules) match(path []string, dir bool) bool { return r.matcher.Match(path, dir) }
