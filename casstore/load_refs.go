package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Chunks come before the record that refers to them, and until then nothing spares them from the collector but that they are
// guests, of which there may be a million. A file of more has records of its own refer to them meanwhile, some chunks each,
// under numbers that no inode of a backup has: stand-ins, which are removed before the state ends.

// standIn writes stand-ins for the chunks that have come since a record was written, when there are many.
func (l *loader) standIn() error {
	if len(l.loose) < defaulted(l.store.opt.loadLoose, loadLoose) {
		return nil
	}
	s := l.store
	size := len(l.loose) / chunk.MaxInline * (recordCost + chunk.MaxInline*(chunk.IDSize+4))
	if err := s.space.admitRecords(l.ctx, size); err != nil {
		return err
	}
	ids := make(map[chunk.ID]struct{}, len(l.loose))
	err := s.edit(l.ctx, func(v *revision) error {
		for rest := l.loose; len(rest) > 0; {
			part := rest[:min(chunk.MaxInline, len(rest))]
			rest = rest[len(part):]
			rec := vfs.InodeRecord{
				Type: vfs.TypeRegular, Nlink: 1, Body: vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, part)},
			}
			for _, e := range part {
				rec.Size += e.Len
				ids[e.ID] = struct{}{}
			}
			l.standIns++
			v.kvs = append(v.kvs, kv{key: keyOfNode(keyInode, l.space.id, maxIno+vfs.Ino(l.standIns)), value: rec.Append(nil)})
		}
		v.forced = true // for their index
		return nil
	})
	if err != nil {
		return err
	}
	s.guests.settle(ids)
	l.loose, l.unreferred = nil, 0
	return nil
}

// dropStandIns removes the stand-ins, some at a time: the records are there for which they stood.
func (l *loader) dropStandIns() error {
	for l.standIns > 0 {
		err := l.store.edit(l.ctx, func(v *revision) error {
			for range min(l.standIns, purgeBatch) {
				v.kvs = append(v.kvs, kv{key: keyOfNode(keyInode, l.space.id, maxIno+vfs.Ino(l.standIns))})
				l.standIns--
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunkRefs sees to it that the chunks are there that a record refers to: one that is not is damage. It notes the nodes, below
// which it does not look again, as one may be in a manifest a million times, and in guests those of the chunks that are.
func (s *Store) chunkRefs(ctx context.Context, record []byte, nodes, guests map[chunk.ID]struct{}) error {
	var absent error
	err := s.refs(ctx, record, func(e chunk.Entry) bool {
		if _, again := nodes[e.ID]; again || absent != nil {
			return false
		}
		there, err := s.hasSound(e.ID)
		if err == nil && !there {
			err = fmt.Errorf("chunk %v is missing: %w", e.ID, vfs.ErrCorrupt)
		}
		if absent = err; absent != nil {
			return false
		}
		if e.Len == 0 {
			nodes[e.ID] = struct{}{}
		}
		if _, guest := s.guests.length(e.ID); guest {
			guests[e.ID] = struct{}{}
		}
		return true
	})
	if absent != nil {
		return absent
	}
	return err
}
