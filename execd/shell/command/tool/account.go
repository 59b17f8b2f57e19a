package tool

import (
	"context"
	"strconv"
	"strings"
)

// Accounts knows the names of users and groups: from /etc/passwd and /etc/group in the workspace's tree, and root
// without. It reads them when first asked.
type Accounts struct {
	call  *Call
	ctx   context.Context
	files map[string][][]string
}

// Accounts returns the names that the process sees.
func (c *Call) Accounts(ctx context.Context) *Accounts {
	return &Accounts{call: c, ctx: ctx, files: make(map[string][][]string)}
}

func (a *Accounts) lines(file string) [][]string {
	lines, ok := a.files[file]
	if !ok {
		data, _ := a.call.FS.ReadFile(a.ctx, file, 1<<20) // none there: no names
		for _, line := range strings.Split(string(data), "\n") {
			if f := strings.Split(line, ":"); len(f) > 2 {
				lines = append(lines, f)
			}
		}
		lines = append(lines, []string{"root", "x", "0"})
		a.files[file] = lines
	}
	return lines
}

func (a *Accounts) name(file string, id uint32) (string, bool) {
	text := strconv.FormatUint(uint64(id), 10)
	for _, f := range a.lines(file) {
		if f[2] == text {
			return f[0], true
		}
	}
	return text, false
}

func (a *Accounts) id(file, name string) (uint32, bool) {
	for _, f := range a.lines(file) {
		if f[0] == name {
			n, err := strconv.ParseUint(f[2], 10, 32)
			return uint32(n), err == nil
		}
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "+"), 10, 32)
	return uint32(n), err == nil
}

// User returns the name of a user, its number in digits when there is none.
func (a *Accounts) User(id uint32) (name string, known bool) { return a.name("/etc/passwd", id) }

// Group returns the name of a group, its number in digits when there is none.
func (a *Accounts) Group(id uint32) (name string, known bool) { return a.name("/etc/group", id) }

// UserID returns the number of a user, by name or in digits.
func (a *Accounts) UserID(name string) (uint32, bool) { return a.id("/etc/passwd", name) }

// GroupID returns the number of a group, by name or in digits.
func (a *Accounts) GroupID(name string) (uint32, bool) { return a.id("/etc/group", name) }
