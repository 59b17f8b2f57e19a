package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Badger gives the space of records that have been removed or replaced back when a compaction meets them. What removes
// them is at first in memory and in the upper levels, and the records are at the bottom, so in a store that is at rest
// that may never happen. A full disk cannot wait for it.

// committedRecords counts what a revision has written and removed. What a removed key held is not known.
func (sp *space) committedRecords(kvs []kv) {
	var removed, written int64
	for _, e := range kvs {
		switch {
		case e.value != nil:
			written += int64(len(e.key) + len(e.value))
		case e.key[0] == keyInode || e.key[0] == keyXattr:
			removed += vfs.MaxInline
		}
	}
	sp.recordsRemoved.Add(removed)
	sp.recordsWritten.Add(written)
}

// worthCompacting reports whether a compaction is likely to make room.
func (s *Store) worthCompacting() bool {
	return s.space.recordsRemoved.Load() >= removedWorth ||
		s.space.recordsWritten.Load() >= max(removedWorth, s.tablesSize()/4)
}

// compactNow makes Badger drop the records that nobody needs, because space is needed: those for mirrors that are behind,
// too. It takes seconds, and space for
// the tables that it writes before it removes the old ones.
func (s *Store) compactNow(ctx context.Context) error {
	if err := s.collector.urgent.take(ctx); err != nil {
		return err
	}
	defer s.collector.urgent.give()
	if !s.worthCompacting() {
		return nil // somebody else has just done it
	}
	s.space.recordsRemoved.Store(0)
	s.space.recordsWritten.Store(0)
	if err := s.pushMemtable(ctx); err != nil {
		return err
	}
	if err := s.closeWindow(ctx); err != nil {
		return err
	}
	if _, err := s.shortenHistory(ctx, true); err != nil {
		return err
	}
	s.letGoOld()
	// A compaction may write all tables anew before it removes the old ones, and a mapped file on a full disk is a SIGBUS.
	if free, err := s.space.free(); err != nil || free < s.tablesSize() {
		return err
	}
	if err := s.compactors.flatten(); err != nil {
		s.log.Warn("badger could not be compacted", "err", err)
	}
	return nil
}

// tablesSize is how many bytes Badger's tables have. As much is kept free beside the reserve, for compactNow.
func (s *Store) tablesSize() (n int64) {
	for _, t := range s.db.Tables() {
		n += int64(t.OnDiskSize)
	}
	return n
}

// pushMemtable gets what is committed out of Badger's memory, where compactions do not look, into tables. Badger does
// that by itself only when so much has been written, so it is given that much to write.
func (s *Store) pushMemtable(ctx context.Context) error {
	const piece = 32 << 10
	var pushed vfs.Rev
	keys := make([][]byte, s.db.Opts().MemTableSize/piece+1)
	for i := range keys {
		keys[i] = binary.BigEndian.AppendUint32([]byte{keyBallast}, uint32(i))
	}
	err := s.edit(ctx, func(v *revision) error {
		pushed = v.rev
		for _, k := range keys {
			v.kvs = append(v.kvs, kv{key: k, value: make([]byte, piece)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Badger sees at the next write only that its memory is full.
	err = s.edit(ctx, func(v *revision) error {
		v.forced = true
		return nil
	})
	for end := time.Now().Add(pushPatience); err == nil && !s.inTables(pushed) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(pushPoll)
	}
	return errors.Join(err, s.edit(context.WithoutCancel(ctx), func(v *revision) error {
		for _, k := range keys {
			v.kvs = append(v.kvs, kv{key: k})
		}
		return nil
	}))
}

// inTables reports whether everything that came before a revision is in tables.
func (s *Store) inTables(r vfs.Rev) bool {
	for _, t := range s.db.Tables() {
		if t.MaxVersion >= uint64(r) {
			return true
		}
	}
	return false
}
