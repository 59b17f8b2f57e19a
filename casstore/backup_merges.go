package casstore

import (
	"encoding/binary"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// version is the lowest version of a stream that has what is to be in it. It finds out what was merged.
func (b *backup) version() (byte, error) {
	r := b.store.readerAt(b.report.Rev)
	defer r.Close()
	whole := make(map[workspaceID]bool)
	version := byte(firstBackup)
	for i := range b.spaces {
		w := &b.spaces[i]
		if w.since != nil {
			continue
		}
		whole[w.held.ws] = true
		err := r.scan(keyOfNote(w.held.ws, conflictNote), nil, false, func(_, _ []byte) (bool, error) {
			version = secondBackup
			return false, nil
		})
		if err != nil {
			return 0, err
		}
	}
	err := r.merges(func(m storedMerge) error {
		if whole[m.from] && whole[m.into] {
			b.merges, version = append(b.merges, m), secondBackup
		}
		return nil
	})
	return version, err
}

// conflicts writes the conflicts of a workspace.
func (b *backup) conflicts(w *backedUp) error {
	r := b.store.readerAt(w.held.rev)
	defer r.Close()
	list, err := r.conflicts(w.held.ws)
	if err != nil {
		return err
	}
	for i := range list {
		note, err := noteOf(&list[i])
		if err != nil {
			return err
		}
		if err := b.out.frame(frameConflict, uvarint(list[i].Number), note.Value); err != nil {
			return err
		}
	}
	return nil
}

// writeMerges writes what was merged, as far as the states are in the stream. One that is not was let go meanwhile: it has been
// merged again.
func (b *backup) writeMerges() error {
	for _, m := range b.merges {
		merged, ok := b.at[origin{ws: m.from, rev: m.rev}]
		if !ok {
			continue
		}
		has, at := -1, vfs.Rev(0)
		for o, n := range b.at {
			if o.ws == m.into && o.rev >= m.at && (has < 0 || o.rev < at) {
				has, at = n, o.rev
			}
		}
		if has < 0 {
			continue
		}
		if err := b.out.frame(frameMerge, binary.AppendUvarint(uvarint(uint64(merged)), uint64(has))); err != nil {
			return err
		}
	}
	return nil
}
