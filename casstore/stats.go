package casstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Stats are counts of a store. Bytes are as on disk unless it says otherwise.
type Stats struct {
	Rev          uint64 // the newest revision
	Workspaces   uint64
	Inodes       uint64 // of all workspaces, at the newest revision
	LogicalBytes uint64 // of all files, holes included
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

// Stats counts. It reads every inode's record and the whole index, as they were last committed.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	r := s.reader()
	defer r.Close()
	st := Stats{
		Rev: uint64(r.rev), DirtyBytes: uint64(s.pool.Used()), BufferBytes: uint64(s.pool.Budget()), Reserve: s.space.reserve,
	}
	err := s.count(ctx, r, &st)
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	for _, p := range s.packs.Packs() {
		st.Packs++
		st.PackBytes += uint64(p.Size)
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
	err := r.scan([]byte{keyWorkspace}, nil, false, func(_, _ []byte) (bool, error) {
		st.Workspaces++
		return true, nil
	})
	if err != nil {
		return err
	}
	err = r.scan([]byte{keyInode}, nil, true, func(_, value []byte) (bool, error) {
		rec, err := vfs.DecodeInode(value)
		st.Inodes++
		st.LogicalBytes += rec.Size
		return ctx.Err() == nil, err
	})
	if err != nil {
		return err
	}
	return r.scan([]byte{keyChunk}, nil, true, func(_, value []byte) (bool, error) {
		loc, err := decodeLoc(value)
		st.Chunks++
		st.ChunkBytes += uint64(loc.Len)
		return ctx.Err() == nil, err
	})
}
