package treepath

import (
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ErrAccess says that the mode of a file or of a directory on the way to it does not let the caller do this (EACCES).
var ErrAccess = errors.New("permission denied")

// Cred is who asks. The zero value is root, whom no mode stops.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // beside GID; never changed once an FS has it
}

// Access bits, as in access(2).
const (
	AccessExec  uint32 = 1
	AccessWrite uint32 = 2
	AccessRead  uint32 = 4
)

// May returns nil when c may do to a node with these attributes what want asks for, else ErrAccess. Root may execute a
// file only when somebody may.
func (c Cred) May(a vfs.Attr, want uint32) error {
	if c.UID == 0 {
		if want&AccessExec != 0 && a.Type != vfs.TypeDir && a.Mode&0o111 == 0 {
			return ErrAccess
		}
		return nil
	}
	if c.bits(a)&want != want {
		return ErrAccess
	}
	return nil
}

// bits picks the three bits of the mode that are about c: the first class that fits decides, even when it gives less.
func (c Cred) bits(a vfs.Attr) uint32 {
	switch {
	case a.UID == c.UID:
		return a.Mode >> 6 & 7
	case c.in(a.GID):
		return a.Mode >> 3 & 7
	}
	return a.Mode & 7
}

func (c Cred) in(gid uint32) bool {
	if gid == c.GID {
		return true
	}
	for _, g := range c.Groups {
		if g == gid {
			return true
		}
	}
	return false
}

// owns reports whether c may change what only an owner may: mode and times.
func (c Cred) owns(a vfs.Attr) bool { return c.UID == 0 || c.UID == a.UID }
