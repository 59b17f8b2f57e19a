package vfs

import "time"

// Ino is the number of an inode. Numbers are unique in a store and never used twice, but that a fork shares those of the
// inodes it began with; a workspace's root is [RootIno] in every workspace. Zero is no inode.
type Ino uint64

// RootIno is the root directory of a workspace.
const RootIno Ino = 1

// Rev is a revision: one atomic commit of a workspace's store. It only grows. Zero is the time before the first one.
type Rev uint64

// Epoch identifies one life of a store, at random. Cursors of another epoch are void.
type Epoch [16]byte

// Cursor is where a peer has got to: a point to resume from.
type Cursor struct {
	Epoch Epoch
	Rev   Rev
}

// Time is a moment in nanoseconds since 1970-01-01T00:00:00Z, as the kernel stores file times, without leap seconds.
// It reaches from the year 1677 to 2262; conversions saturate.
type Time int64

// TimeOf returns t in the resolution and range of a [Time].
func TimeOf(t time.Time) Time { return TimeFromUnix(t.Unix(), int64(t.Nanosecond())) }

// TimeFromUnix returns the moment sec seconds and nsec nanoseconds (0 to 999,999,999) after the epoch.
func TimeFromUnix(sec, nsec int64) Time {
	const limit = 1<<63/1_000_000_000 - 1
	switch {
	case sec > limit:
		return 1<<63 - 1
	case sec < -limit:
		return -1 << 63
	}
	return Time(sec*1_000_000_000 + nsec)
}

// Unix splits t into whole seconds since the epoch and the nanoseconds (0 to 999,999,999) that follow them.
func (t Time) Unix() (sec int64, nsec uint32) {
	sec, n := int64(t)/1_000_000_000, int64(t)%1_000_000_000
	if n < 0 {
		sec, n = sec-1, n+1_000_000_000
	}
	return sec, uint32(n)
}

// Go returns t as a time.Time in UTC.
func (t Time) Go() time.Time {
	sec, nsec := t.Unix()
	return time.Unix(sec, int64(nsec)).UTC()
}

// Type says what an inode is. The values are part of the format.
type Type uint8

// The types of inode.
const (
	TypeRegular Type = 1 + iota
	TypeDir
	TypeSymlink
	TypeFIFO
	TypeSocket
	TypeCharDev
	TypeBlockDev
)

// Valid reports whether t is one of the types above.
func (t Type) Valid() bool { return t >= TypeRegular && t <= TypeBlockDev }

// Permission bits of a mode beside the nine of rwxrwxrwx; the values are those of chmod(2).
const (
	ModeSetUID uint32 = 0o4000
	ModeSetGID uint32 = 0o2000
	ModeSticky uint32 = 0o1000
	ModeMask   uint32 = 0o7777
)

// Attr is what stat(2) says of an inode.
type Attr struct {
	Ino    Ino
	Type   Type
	Mode   uint32 // permission bits, within ModeMask
	Nlink  uint32 // for a directory 2 and one for each directory in it
	UID    uint32
	GID    uint32
	Rdev   uint32 // device number in the kernel's 32-bit encoding, of a character or block device
	Size   uint64 // bytes; of a symlink the length of its target
	Blocks uint64 // 512-byte units that hold bytes: holes do not count
	Atime  Time   // kept local, never replicated
	Mtime  Time
	Ctime  Time
	Parent Ino // of a directory, the directory that it is in (the root is its own); else zero
}

// SetMask says which fields of an [AttrSet] are to be set.
type SetMask uint32

// Fields of an AttrSet.
const (
	SetMode     SetMask = 1 << iota // Mode
	SetUID                          // UID
	SetGID                          // GID
	SetSize                         // Size: shorten, or extend with a hole
	SetAtime                        // Atime
	SetMtime                        // Mtime
	SetAtimeNow                     // the tree's clock; Atime is not read
	SetMtimeNow                     // the tree's clock; Mtime is not read
	SetKillPriv                     // with SetSize or an owner: remove the set-ID bits as write(2) and chown(2) do
)

// AttrSet is a change of attributes, applied whole. Any change sets the ctime to now; SetSize also sets the mtime,
// unless SetMtime is there too, even when the size stays (ftruncate(2)).
type AttrSet struct {
	Mask  SetMask
	Mode  uint32
	UID   uint32
	GID   uint32
	Size  uint64
	Atime Time
	Mtime Time
}

// NewNode is what the maker of a node decides of it. The mode has already been through the umask.
type NewNode struct {
	Mode uint32
	UID  uint32
	GID  uint32 // not used in a set-group-ID directory: a new node takes the directory's group
	Rdev uint32 // of a device
}

// Offset is a position in a directory's listing: zero is its start, and [Dirent.Offset] resumes after that entry. It
// stays good while entries come and go, and across restarts, as telldir(3) needs. Trees use only 16 and up, below 1<<63;
// what is lower is left to callers, for "." and "..".
type Offset uint64

// FirstOffset is the lowest offset that a tree gives to an entry.
const FirstOffset Offset = 16

// Dirent is a name in a directory.
type Dirent struct {
	Name   string // 1 to MaxNameLen bytes, any but '/' and NUL
	Ino    Ino
	Type   Type
	Offset Offset
}

// RenameFlags change what Rename does; the meanings are those of renameat2(2).
type RenameFlags uint32

// Flags of Rename.
const (
	RenameNoReplace RenameFlags = 1 << iota // fail with ErrExist when the new name is taken
	RenameExchange                          // swap the two names, both of which must be there
)

// XattrFlags change what SetXattr does; the meanings are those of setxattr(2).
type XattrFlags uint32

// Flags of SetXattr. With neither, the attribute is made or replaced.
const (
	XattrCreate  XattrFlags = 1 << iota // fail with ErrExist when the attribute is there
	XattrReplace                        // fail with ErrNoXattr when it is not
)

// AllocMode says what Allocate does; the meanings are those of fallocate(2).
type AllocMode uint32

// Modes of Allocate. Zero extends the file to cover the range.
const (
	AllocKeepSize  AllocMode = 1 << iota // do not change the size
	AllocPunchHole                       // the range reads as zeros and holds no bytes; implies AllocKeepSize
	AllocZeroRange                       // the range reads as zeros; extends the file unless AllocKeepSize
)

// Whence says what Seek looks for.
type Whence uint8

// The two searches of lseek(2) that need a tree.
const (
	SeekData Whence = iota // the next byte that is not in a hole
	SeekHole               // the next hole; the end of the file is one
)

// StatFS is what statfs(2) says of the filesystem under a workspace. Free space is that of the disk, less the reserve
// that a store keeps so that deleting works when it is full.
type StatFS struct {
	BlockSize uint32 // bytes
	Blocks    uint64 // of BlockSize
	Free      uint64 // of BlockSize
	Available uint64 // of BlockSize, to ordinary users
	Files     uint64 // inodes in all
	FilesFree uint64
}

// ChangeKind says what a [Change] is about.
type ChangeKind uint8

// Kinds of change.
const (
	ChangeAttr  ChangeKind = 1 + iota // attributes of Ino
	ChangeData                        // bytes (and so attributes) of Ino
	ChangeEntry                       // the name Name in the directory Dir now leads to Ino, or nowhere when Ino is zero
)

// Change says that something in a tree is no longer as it was. It is delivered after the new state is visible.
type Change struct {
	Kind   ChangeKind
	Ino    Ino
	Dir    Ino
	Name   string
	Origin any // who made it: OriginOf the context of the call
}
