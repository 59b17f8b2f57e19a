package casstore

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// lease is a range of inode numbers that one peer may give. Layout, under its first number: last uvarint | peer 16 bytes.
type lease struct {
	vfs.InoRange
	peer vfs.PeerID
}

func (l lease) encode() []byte {
	return append(uvarint(uint64(l.Last)), l.peer[:]...)
}

// decodeLease decodes the value and the key of a lease.
func decodeLease(key, value []byte) (l lease, err error) {
	last, peer, err := cutUvarint(value)
	if len(key) != prefixLen || err != nil || len(peer) != len(l.peer) {
		return l, fmt.Errorf("lease %x %x: %w", key, value, vfs.ErrCorrupt)
	}
	_, l.First = nodeOfKey(key)
	l.Last, l.peer = vfs.Ino(last), vfs.PeerID(peer)
	if !l.Valid() {
		return l, fmt.Errorf("lease %x %x: %w", key, value, vfs.ErrCorrupt)
	}
	return l, nil
}

// LeaseInos implements vfs.Authority. Numbers of inodes are those of the store, so a lease takes them from all workspaces.
func (a *Authority) LeaseInos(ctx context.Context, peer vfs.PeerID, n uint64) (in vfs.InoRange, err error) {
	err = a.call(ctx, "lease", func() error {
		if n == 0 || n > vfs.MaxLease {
			return fmt.Errorf("%d numbers: %w", n, vfs.ErrInvalid)
		}
		s := a.tree.store
		return s.edit(ctx, func(v *revision) error {
			in.First = vfs.Ino(s.inos.Add(n) - n)
			in.Last = in.First + vfs.Ino(n) - 1
			l := lease{InoRange: in, peer: peer}
			v.kvs = append(v.kvs, kv{key: keyOfNode(keyLease, a.tree.id, in.First), value: l.encode()})
			return nil
		})
	})
	if err != nil {
		return vfs.InoRange{}, err
	}
	return in, nil
}

// lease returns the lease that holds an inode number, or the one before it: its range is empty when there is none.
func (r *reader) lease(ws workspaceID, ino vfs.Ino) (l lease, err error) {
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Reverse = true
	opt.Prefix = keyOfNode(keyLease, ws, 0)[:9]
	it := r.txn.NewIterator(opt)
	defer it.Close()
	if it.Seek(keyOfNode(keyLease, ws, ino)); !it.Valid() {
		return lease{InoRange: vfs.InoRange{First: 1}}, nil
	}
	item := it.Item()
	err = badgerError(item.Value(func(v []byte) error {
		l, err = decodeLease(item.Key(), v)
		return err
	}), item.Key())
	return l, err
}
