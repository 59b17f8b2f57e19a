package tools

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// Options is what a set works on. Only FS is needed.
type Options struct {
	FS       treepath.FS // FS.Root is what no path leaves
	ReadOnly bool
	History  History // nil: no snapshots, and nothing to compare with
	Since    string  // what Diff compares with when it is not told: a moment of History
	Execs    Execs   // nil: nothing can be run
}

// History is the workspace as it was.
type History interface {
	// Snapshot names the present state.
	Snapshot(ctx context.Context, name, message string) (vfs.Rev, error)
	// At opens the workspace as it was at a revision, a snapshot or so long ago, as WORKSPACE@WHEN says it: ErrNoRevision
	// when that is not kept.
	At(ctx context.Context, when string) (tree vfs.Tree, done func() error, err error)
}

// Set is the tools on one workspace. Its methods are safe for concurrent use.
type Set struct {
	Options
	turn chan struct{} // holds one value: who has taken it may change files
}

// New returns the tools on a workspace.
func New(o Options) *Set {
	s := &Set{Options: o, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// change runs f when the set may change things, after all changes before it.
func (s *Set) change(ctx context.Context, what string, f func() error) error {
	if s.ReadOnly {
		return fmt.Errorf("%s: these tools may only read: %w", what, vfs.ErrReadOnly)
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, vfs.ErrInterrupted)
	}
	defer func() { s.turn <- struct{}{} }()
	return f()
}

// clean is a path as results name it: absolute, without "." and "//". ".." stays, because a symlink may be before it.
func clean(p string) string {
	if strings.Contains("/"+p+"/", "/../") {
		return "/" + strings.TrimLeft(p, "/")
	}
	return path.Clean("/" + p)
}

// within says how many of something are wanted: what was asked for, or usual, but no more than most.
func within(asked, usual, most int) (int, error) {
	switch {
	case asked < 0:
		return 0, fmt.Errorf("%d of something: %w", asked, vfs.ErrInvalid)
	case asked == 0:
		return usual, nil
	}
	return min(asked, most), nil
}

func typeName(t vfs.Type) string { return typeNames[t] }

var typeNames = map[vfs.Type]string{
	vfs.TypeRegular: "file", vfs.TypeDir: "dir", vfs.TypeSymlink: "symlink", vfs.TypeFIFO: "fifo", vfs.TypeSocket: "socket",
	vfs.TypeCharDev: "char", vfs.TypeBlockDev: "block",
}

// readable makes text of bytes that may be anything: a model can be given nothing else.
func readable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
