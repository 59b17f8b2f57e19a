package daemon

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// fsType is the type of our mounts in mountinfo.
const fsType = "fuse.carrel"

// Entry is a mount as the kernel lists it (proc_pid_mountinfo(5)).
type Entry struct {
	Dir    string
	Type   string
	Source string
}

// Ours reports whether it is a workspace.
func (e Entry) Ours() bool { return e.Type == fsType }

// Workspace splits the source of a mount of ours into the workspace, or a moment of one (WORKSPACE@WHEN), and the store's directory.
// That is absolute, and neither a workspace nor a moment has a "/".
func (e Entry) Workspace() (workspace, store string) {
	workspace, store, found := strings.Cut(e.Source, "@/")
	if found {
		store = "/" + store
	}
	return workspace, store
}

// sourceOf is the inverse.
func sourceOf(workspace, store string) string { return workspace + "@" + store }

// Entries lists all mounts of this process's namespace, in the order in which they were made.
func Entries() ([]Entry, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return parseEntries(f)
}

// At returns the topmost mount on dir, which is absolute and without symlinks.
func At(dir string) (e Entry, ok bool, err error) {
	all, err := Entries()
	e, ok = topmost(all, dir)
	return e, ok, err
}

func topmost(entries []Entry, dir string) (e Entry, ok bool) {
	for _, x := range entries {
		if x.Dir == dir {
			e, ok = x, true
		}
	}
	return e, ok
}

// Over returns the mount that a path is in. The path is absolute and without symlinks; nothing is looked at there.
func Over(path string) (e Entry, ok bool, err error) {
	all, err := Entries()
	e, ok = over(all, path)
	return e, ok, err
}

func over(entries []Entry, path string) (e Entry, ok bool) {
	for _, x := range entries {
		if in := path == x.Dir || strings.HasPrefix(path, strings.TrimSuffix(x.Dir, "/")+"/"); in && len(x.Dir) >= len(e.Dir) {
			e, ok = x, true
		}
	}
	return e, ok
}

func parseEntries(r io.Reader) ([]Entry, error) {
	var entries []Entry
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if e, ok := parseEntry(line); ok {
			entries = append(entries, e)
		}
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parseEntry reads a line: the mount point is its fifth field; type and source follow the one that is "-".
func parseEntry(line string) (Entry, bool) {
	left, right, ok := strings.Cut(line, " - ")
	fields, rest := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 5 || len(rest) < 2 {
		return Entry{}, false
	}
	return Entry{Dir: unescape(fields[4]), Type: rest[0], Source: unescape(rest[1])}, true
}

// unescape decodes the kernel's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }
