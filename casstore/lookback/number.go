package lookback

import (
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The number of an inode below .carrel:
//
//	 63  62         44  43                   0
//	┌───┬─────────────┬───────────────────────┐
//	│ 1 │ place       │ number in that place  │
//	└───┴─────────────┴───────────────────────┘
//
// Numbers of a store are below 1<<63, and those that it gives out itself far below 1<<44. A snapshot with a larger one, which
// can come only from a backup, cannot be shown: vfs.ErrNotSupported.
const (
	below      = vfs.Ino(1) << 63
	numberBits = 44
	maxNumber  = 1<<numberBits - 1
	maxPlace   = place(1<<(63-numberBits) - 1)
)

// place is where an inode is.
type place uint32

const (
	placeSelf  place = iota // the directory itself: its number is vfs.RootIno, that of snapshots the next
	placeRev                // rev; the number is the revision
	placeFirst              // the first that a snapshot can have
)

const (
	selfIno      = below | vfs.RootIno
	snapshotsIno = below | vfs.RootIno + 1
)

// isBelow reports whether a number is that of .carrel or of what is in it.
func isBelow(ino vfs.Ino) bool { return ino&below != 0 }

func split(ino vfs.Ino) (p place, number vfs.Ino) {
	return place(ino &^ below >> numberBits), ino & maxNumber
}

func join(p place, number vfs.Ino) (vfs.Ino, error) {
	if number > maxNumber {
		return 0, fmt.Errorf("inode %d of a snapshot: %w", number, vfs.ErrNotSupported)
	}
	return below | vfs.Ino(p)<<numberBits | number, nil
}

// renumber makes attributes that a snapshot gives those of an inode below .carrel.
func renumber(p place, a vfs.Attr) (vfs.Attr, error) {
	root := a.Ino == vfs.RootIno
	var err error
	if a.Ino, err = join(p, a.Ino); err != nil {
		return vfs.Attr{}, err
	}
	switch {
	case root:
		a.Parent = snapshotsIno
	case a.Parent != 0:
		a.Parent, err = join(p, a.Parent)
	}
	return a, err
}
