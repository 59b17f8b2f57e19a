package casstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Stats are counts of a store. Bytes are as on disk unless it says otherwise.
type Stats struct {
	Rev          uint64 // the newest revision
	Workspaces   uint64
	Inodes       uint64 // of all workspaces, at the newest revision
	LogicalBytes uint64 // of all files, holes included
	DataBytes    uint64 // of files in chunks, without holes, at the newest revision: each chunk as often as it is referred to
	UniqueBytes  uint64 // the same, each chunk once
	StoredBytes  uint64 // what these chunks take, compressed where that helps
	PastBytes    uint64 // chunks that only history, snapshots, forks and merges need
	Reclaimable  uint64 // of packs, that nothing needs: a collection frees it. Zero while something is damaged: what that needs is not known
	Damaged      uint64 // records of files, of the past too, that lead to what is damaged: chunks behind that are not counted
	SampledOf    uint64 // the four before are of one chunk of so many, and about right; 1 when they are exact
	Chunks       uint64 // in the index
	ChunkBytes   uint64 // their frames in packs
	Packs        uint64
	PackBytes    uint64 // the packs' files; what is in no frame of the index is garbage
	BadgerBytes  uint64 // the records and the index
	DirtyBytes   uint64 // file bytes in memory that are in no pack yet
	BufferBytes  uint64 // how many of those there may be
	DiskFree     uint64 // of the disk, the reserve included
	Reserve      uint64 // kept free, so that deleting always works
}

// Stats counts. It reads every inode's record, what manifests refer to, and the whole index, as they were last committed. A
// fork counts for what is different in it. What is damaged is counted as far as it can be. Memory is bounded: of more than a million chunks it looks at a sample.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	r := s.reader()
	defer r.Close()
	st := Stats{
		Rev: uint64(r.rev), DirtyBytes: uint64(s.pool.Used()), BufferBytes: uint64(s.pool.Budget()), Reserve: s.space.reserve,
	}
	for _, p := range s.packs.Packs() { // before anything is looked at: what comes later is in no sum
		st.Packs++
		st.PackBytes += uint64(p.Size)
	}
	err := s.count(ctx, r, &st)
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	if st.BadgerBytes, err = diskUse(filepath.Join(s.dir, badgerDir)); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	free, err := s.space.free()
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	st.DiskFree = uint64(free)
	return st, nil
}

// diskUse is what the files of a directory take. Badger itself counts once a minute, and its logs are mostly holes.
func diskUse(dir string) (uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, e := range entries {
		var st unix.Stat_t
		switch err := unix.Lstat(filepath.Join(dir, e.Name()), &st); {
		case errors.Is(err, unix.ENOENT): // Badger removes tables as it goes
		case err != nil:
			return 0, err
		default:
			n += uint64(st.Blocks) * 512
		}
	}
	return n, nil
}

func (s *Store) count(ctx context.Context, r *reader, st *Stats) error {
	there := make(map[workspaceID]bool)
	err := r.scan([]byte{keyWorkspace}, nil, false, func(key, _ []byte) (bool, error) {
		there[workspaceOfKey(key)] = true
		return true, nil
	})
	if err != nil {
		return err
	}
	st.Workspaces = uint64(len(there))
	u := newUsage()
	if err := s.countRecords(ctx, u, there, st); err != nil {
		return err
	}
	if err := s.countChunks(ctx, r, u, st); err != nil {
		return err
	}
	st.DataBytes, st.SampledOf = u.data, 1<<u.bits
	st.UniqueBytes = u.unique() << u.bits
	needed := (u.stored[inUse] + u.stored[inPast]) << u.bits
	st.StoredBytes, st.PastBytes = u.stored[inUse]<<u.bits, u.stored[inPast]<<u.bits
	if st.Damaged == 0 {
		st.Reclaimable = st.PackBytes - min(st.PackBytes, needed+pack.HeaderSize*st.Packs)
	}
	return nil
}

// countRecords marks what is referred to, and counts what is in the workspaces that are there.
func (s *Store) countRecords(ctx context.Context, u *usage, there map[workspaceID]bool, st *Stats) error {
	mark := func(class usageClass) func(chunk.Entry) { return func(e chunk.Entry) { u.mark(e, class) } }
	sound := func(err error) error {
		if isUnreadable(err) {
			st.Damaged++
			return nil
		}
		return err
	}
	if err := s.markMemory(ctx, mark(inUse), func(_ state, err error) error { return sound(err) }); err != nil {
		return err
	}
	kept := s.keptRevisions()
	r := s.reader()
	defer r.Close()
	return r.versions(ctx, func(v version) error {
		if live, past := kept.wants(v.ws, v.rev, v.newer); !live && !past {
			return nil
		}
		rec, err := vfs.DecodeInode(v.value)
		if err != nil {
			return sound(err)
		}
		if !v.newest() || !there[v.ws] {
			return sound(s.markBody(ctx, rec.Body, mark(inPast)))
		}
		st.Inodes++
		st.LogicalBytes += rec.Size
		return sound(s.markBody(ctx, rec.Body, func(e chunk.Entry) {
			u.data += e.Len
			u.mark(e, inUse)
		}))
	})
}

// countChunks adds up the frames in packs, those too that are in no index yet.
func (s *Store) countChunks(ctx context.Context, r *reader, u *usage, st *Stats) error {
	for id, loc := range s.chunks.uncommitted() {
		u.frame(id, loc)
	}
	return r.scan([]byte{keyChunk}, nil, true, func(key, value []byte) (bool, error) {
		loc, err := decodeLoc(value)
		if err == nil {
			st.Chunks++
			st.ChunkBytes += uint64(loc.Len)
			u.frame(chunk.ID(key[1:]), loc)
		}
		return ctx.Err() == nil, err
	})
}
