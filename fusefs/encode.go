package fusefs

import (
	"encoding/binary"
	"syscall"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The layouts of <linux/fuse.h>, protocol 7.33, which is what the library negotiates. We encode them ourselves because
// the library loses the sticky bit and writes times before 1970 with negative nanoseconds. Integers are in the
// machine's byte order.

// The protocol that we speak. Requests of younger ones come all the same, when the kernel knows them.
const (
	protocolMajor = 7
	protocolMinor = 33
)

// order is the byte order of the kernel's structures.
var order = binary.NativeEndian

// modes gives the S_IF bits of each type.
var modes = [...]uint32{
	vfs.TypeRegular:  syscall.S_IFREG,
	vfs.TypeDir:      syscall.S_IFDIR,
	vfs.TypeSymlink:  syscall.S_IFLNK,
	vfs.TypeFIFO:     syscall.S_IFIFO,
	vfs.TypeSocket:   syscall.S_IFSOCK,
	vfs.TypeCharDev:  syscall.S_IFCHR,
	vfs.TypeBlockDev: syscall.S_IFBLK,
}

// modeOf returns the S_IF bits of t, zero for a type that is none.
func modeOf(t vfs.Type) uint32 {
	if int(t) >= len(modes) {
		return 0
	}
	return modes[t]
}

// direntType returns the DT_ constant of t, which readdir(3) defines as the S_IF bits shifted.
func direntType(t vfs.Type) uint32 { return modeOf(t) >> 12 }

// appendAttr appends a fuse_attr.
func appendAttr(b []byte, a *vfs.Attr) []byte {
	asec, ansec := a.Atime.Unix()
	msec, mnsec := a.Mtime.Unix()
	csec, cnsec := a.Ctime.Unix()
	b = order.AppendUint64(b, uint64(a.Ino))
	b = order.AppendUint64(b, a.Size)
	b = order.AppendUint64(b, a.Blocks)
	b = order.AppendUint64(b, uint64(asec))
	b = order.AppendUint64(b, uint64(msec))
	b = order.AppendUint64(b, uint64(csec))
	b = order.AppendUint32(b, ansec)
	b = order.AppendUint32(b, mnsec)
	b = order.AppendUint32(b, cnsec)
	b = order.AppendUint32(b, modeOf(a.Type)|a.Mode&vfs.ModeMask)
	b = order.AppendUint32(b, a.Nlink)
	b = order.AppendUint32(b, a.UID)
	b = order.AppendUint32(b, a.GID)
	b = order.AppendUint32(b, a.Rdev)
	b = order.AppendUint32(b, blockSize)
	return order.AppendUint32(b, 0) // flags
}

// appendAttrOut appends a fuse_attr_out, which answers GETATTR and SETATTR. The kernel may keep it for a time of whole
// seconds.
func appendAttrOut(b []byte, a *vfs.Attr, keep time.Duration) []byte {
	b = order.AppendUint64(b, uint64(keep/time.Second))
	b = order.AppendUint64(b, 0) // nanoseconds, padding
	return appendAttr(b, a)
}

// entryOutSize is the length of a fuse_entry_out.
const entryOutSize = 128

// appendEntryOut appends a fuse_entry_out, which answers whatever makes or finds a name. Node ids are inode numbers;
// these are never used twice, so the generation is constant. Inode 0 says that the name is missing and stays so. The kernel
// may keep the name and the attributes for times of whole seconds.
func appendEntryOut(b []byte, a *vfs.Attr, keepName, keepAttr time.Duration) []byte {
	b = order.AppendUint64(b, uint64(a.Ino))
	b = order.AppendUint64(b, 0) // generation
	b = order.AppendUint64(b, uint64(keepName/time.Second))
	b = order.AppendUint64(b, uint64(keepAttr/time.Second))
	b = order.AppendUint64(b, 0) // both nanoseconds
	return appendAttr(b, a)
}

// appendOpenOut appends a fuse_open_out.
func appendOpenOut(b []byte, handle uint64, flags uint32) []byte {
	b = order.AppendUint64(b, handle)
	b = order.AppendUint32(b, flags)
	return order.AppendUint32(b, 0)
}

// appendWriteOut appends a fuse_write_out.
func appendWriteOut(b []byte, n uint32) []byte {
	b = order.AppendUint32(b, n)
	return order.AppendUint32(b, 0)
}

// direntHeader is the length of a fuse_dirent before its name.
const direntHeader = 24

// direntSize is what a name takes in a READDIR reply, in bytes.
func direntSize(name string) int { return (direntHeader + len(name) + 7) &^ 7 }

// appendDirent appends a fuse_dirent, padded to 8 bytes.
func appendDirent(b []byte, d vfs.Dirent) []byte {
	b = order.AppendUint64(b, uint64(d.Ino))
	b = order.AppendUint64(b, uint64(d.Offset))
	b = order.AppendUint32(b, uint32(len(d.Name)))
	b = order.AppendUint32(b, direntType(d.Type))
	b = append(b, d.Name...)
	for pad := direntSize(d.Name) - direntHeader - len(d.Name); pad > 0; pad-- {
		b = append(b, 0)
	}
	return b
}
