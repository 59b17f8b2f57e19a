package vfstest

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// RunReadOnly takes what a tree that cannot be written promises to one: every change gives ErrReadOnly, everything else
// goes on. open makes a tree, has fill write to it, and returns one that holds the same and cannot be written.
func RunReadOnly(t *testing.T, open func(t *testing.T, fill func(writable vfs.Tree)) vfs.Tree) {
	var work vfs.Ino
	tree := open(t, func(writable vfs.Tree) {
		s := newSuite(t, writable)
		ino := s.create(s.dir, "source").Ino
		s.write(ino, 0, []byte("bytes"))
		s.setXattr(ino, "user.present", "value")
		s.create(s.dir, "taken")
		s.mkdir(s.dir, "directory")
		work = s.dir
	})
	s := &suite{T: t, tree: tree, dir: work}
	source, err := tree.Lookup(t.Context(), work, "source")
	s.ok(err)
	before := s.snapshot()
	names := map[string]string{"Unlink": "taken", "RenameFrom": "taken", "Lookup": "taken", "Rmdir": "directory"}
	for _, op := range nameOperations {
		name := "free"
		if there, ok := names[op.name]; ok {
			name = there
		}
		s.readOnly(op.name, op.changes, op.call(t.Context(), tree, work, name, work, "source"))
	}
	for _, op := range inodeOperations {
		s.readOnly(op.name, op.changes, op.call(t.Context(), tree, source.Ino))
	}
	for _, op := range treeOperations {
		s.readOnly(op.name, op.changes, op.call(t.Context(), tree))
	}
	tree.Hold(source.Ino)
	tree.Release(source.Ino, 1)
	s.unchanged(before)
	if err := Audit(t.Context(), tree); err != nil {
		t.Error(err)
	}
}

// readOnly reports a change that did not give ErrReadOnly, and anything else that failed.
func (s *suite) readOnly(op string, changes bool, err error) {
	s.Helper()
	if !changes {
		s.ok(err)
		return
	}
	if s.fails(err, vfs.ErrReadOnly); s.Failed() {
		s.Fatal(op)
	}
}
