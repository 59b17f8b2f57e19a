package execd

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Watched is a workspace that can tell what changes in it, whoever changes it. One that knows no revisions of its own is
// none.
type Watched interface {
	Workspace
	// Follow calls f with what has changed since a revision, and then, for as long as ctx lasts, with what has changed since
	// the last call. The first call comes at once: its News may be empty, and say from where on the others follow. A revision
	// of zero is now: nothing that was written before the call is told. What happened and was undone between two calls is not
	// told either: the cost follows what is different, and nobody who is slow is owed a backlog.
	//
	// It returns the error of f as it is, ErrInterrupted when ctx ended, ErrClosed when the workspace was closed by who has it,
	// and ErrNoRevision when what has changed since the revision can no longer be told: whoever follows has to look at
	// everything then, and follow from now on.
	Follow(ctx context.Context, after vfs.Rev, f func(News) error) error
	// Differences calls yield for what is different at one revision from what was at another, by path, and returns the latter:
	// zero is now, with all that is written. ErrNoRevision when one of them is not kept; errors of yield come back as they are.
	Differences(ctx context.Context, from, to vfs.Rev, yield func(Difference) error) (vfs.Rev, error)
}

// News is what has changed in a workspace.
type News struct {
	Rev     vfs.Rev      // up to which it is
	Changed []Difference // by path
}

// DifferenceKind says how a path is other than it was.
type DifferenceKind string

// The kinds of differences.
const (
	Added    DifferenceKind = "added"
	Removed  DifferenceKind = "removed"
	Modified DifferenceKind = "modified"
	Renamed  DifferenceKind = "renamed" // and perhaps modified
)

// Difference is a path that is other than it was. A directory that was renamed is one, whatever is in it.
type Difference struct {
	Kind   DifferenceKind
	Path   string // from "/"; of what was removed, as it was
	From   string // of what was renamed, what it was
	Type   vfs.Type
	Size   uint64   // of a regular file; of what was removed, as it was
	Fields []string // of what was modified or renamed: bytes, mode, owner, times, xattrs
}

// Below returns what a difference is to who looks at a path and what is below it alone; ok is false when it is nothing. What
// was renamed over the border has come or gone. That a directory above it was renamed is told as it is: all below it has
// another path, and there may be nothing at this one.
func (d Difference) Below(path string) (seen Difference, ok bool) {
	is, was := within(d.Path, path), d.From != "" && within(d.From, path)
	switch {
	case d.Kind != Renamed:
		return d, is
	case is && was:
		return d, true
	case is:
		d.Kind, d.From, d.Fields = Added, "", nil
		return d, true
	case was:
		d.Kind, d.Path, d.From, d.Fields = Removed, d.From, "", nil
		return d, true
	}
	return d, within(path, d.Path) || within(path, d.From)
}

// within reports whether a path is another, or below it.
func within(path, dir string) bool {
	for len(dir) > 0 && dir[len(dir)-1] == '/' {
		dir = dir[:len(dir)-1]
	}
	return len(path) >= len(dir) && path[:len(dir)] == dir && (len(path) == len(dir) || path[len(dir)] == '/')
}
