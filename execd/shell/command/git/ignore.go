package git

import (
	"bufio"
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ignored returns what says which files are ignored: by the user, in this repository alone, and by the .gitignore of each
// directory, of which the deepest wins. What is in an ignored directory is not looked at.
func (g *call) ignored() (gitignore.Matcher, error) {
	w := &ignoreWalk{call: g}
	for _, file := range []string{g.userIgnores(), path.Join(g.dir, "info/exclude")} {
		if err := w.read(file, nil); err != nil {
			return nil, err
		}
	}
	err := w.walk(nil)
	return gitignore.NewMatcher(w.patterns), err
}

// userIgnores is the user's own file of ignored files.
func (g *call) userIgnores() string {
	home, _ := g.Getenv("HOME")
	home = path.Join("/", home)
	if file := g.setting("core.excludesfile"); file != "" {
		if rest, ok := strings.CutPrefix(file, "~/"); ok {
			return path.Join(home, rest)
		}
		return file
	}
	if dir, _ := g.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return path.Join(dir, "git/ignore")
	}
	return path.Join(home, ".config/git/ignore")
}

type ignoreWalk struct {
	*call
	patterns []gitignore.Pattern
}

func (w *ignoreWalk) walk(dir []string) error {
	full := path.Join(w.root, path.Join(dir...))
	if err := w.read(path.Join(full, ".gitignore"), dir); err != nil {
		return err
	}
	entries, err := w.FS.ReadDir(w.ctx, full)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.Step(w.ctx, 1+len(w.patterns)>>4); err != nil {
			return err
		}
		if e.Type != vfs.TypeDir || e.Name == ".git" {
			continue
		}
		// A copy: patterns keep the directory that they are of.
		below := append(slices.Clone(dir), e.Name)
		if gitignore.NewMatcher(w.patterns).Match(below, true) {
			continue
		}
		if err := w.walk(below); err != nil {
			return err
		}
	}
	return nil
}

// read adds the patterns of a file, which count below dir. A symlink is none, as it is for git.
func (w *ignoreWalk) read(file string, dir []string) error {
	if a, err := w.FS.Lstat(w.ctx, file); err != nil || a.Type != vfs.TypeRegular {
		if err != nil && !notThere(err) {
			return err
		}
		return nil
	}
	b, err := w.FS.ReadFile(w.ctx, file, maxConfig)
	if err != nil {
		return err
	}
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, maxConfig)
	for in.Scan() {
		if line := ignorePattern(in.Text()); line != "" {
			w.patterns = append(w.patterns, gitignore.ParsePattern(line, dir))
		}
	}
	return in.Err()
}

// ignorePattern makes a line of an ignore file a pattern in Go's form; it is empty for a comment.
func ignorePattern(line string) string {
	line = strings.TrimPrefix(line, "\ufeff")
	if strings.HasPrefix(line, "#") {
		return ""
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return strings.ReplaceAll(line, "[!", "[^")
}
