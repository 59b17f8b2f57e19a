package fusefs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	_ "unsafe" // for go:linkname

	"bazil.org/fuse"
	"golang.org/x/sys/unix"
)

// The first message of a mount is INIT, in which kernel and daemon agree on what they can do. The library answers it
// by itself and cannot say that a request may be longer than 128 KiB. So root answers it before the library is there:
//
//	Mount                                     the library
//	  open /dev/fuse, mount(2)
//	  read INIT, answer it as we like
//	  fuse.Mount ───────────────────────────► runs fusermount3, which is this program
//	                                            makes a pair of sockets, puts INIT into one,
//	                                            passes the other on, exits
//	                                          reads INIT from it, answers to nobody
//	  dup3: the device in the socket's place
//
// The INIT that the library gets is the kernel's own, with the flags that were agreed on; so it believes of the
// connection what is true. What does not fit into its buffers it could not read, hence libraryBuffer.
//
// Without all this everything works by the library's own INIT, with more and shorter requests: for ordinary users,
// whose fusermount3 is the real one; where the library is not as it is known; and when plainEnv is set.

const (
	// plainEnv forbids our own INIT when it is not empty.
	plainEnv = "CARREL_FUSE_PLAIN"
	// initEnv tells the helper the INIT that the library is to get, in hexadecimal.
	initEnv = "CARREL_FUSE_INIT"
)

// wantedFlags are the features that we ask for, if the kernel offers them. InitAtomicTrunc is not among them: it
// would put O_TRUNC into an OPEN that the kernel does not send.
const wantedFlags = fuse.InitAsyncRead | fuse.InitExportSupport | fuse.InitBigWrites | fuse.InitDoReaddirplus |
	fuse.InitAsyncDIO | fuse.InitParallelDirOps | fuse.InitMaxPages | fuse.InitCacheSymlinks |
	fuse.InitHandleKillPrivV2 | fuse.InitSetxattrExt

// libraryBuffer is the length of the buffers that the library reads requests into, in bytes. It makes them when they
// are needed and keeps them, so it can be changed only before the first one is made.
//
//go:linkname libraryBuffer bazil.org/fuse.bufSize
var libraryBuffer int

// longRequests says that the library's buffers hold a WRITE of maxWrite.
var longRequests = lengthenBuffers()

func lengthenBuffers() bool {
	const libraryMaxWrite = 128 << 10
	if libraryBuffer != os.Getpagesize()+libraryMaxWrite {
		return false
	}
	libraryBuffer += maxWrite - libraryMaxWrite
	return true
}

// canHandshake reports whether Mount answers INIT.
func canHandshake() bool {
	return os.Geteuid() == 0 && rawLayout.ok && longRequests && helperReady.Load() && os.Getenv(plainEnv) == ""
}

// mountWithHandshake is for root.
func mountWithHandshake(dir string, o Options) (*fuse.Conn, error) {
	m := mountOptions{source: o.Name, fstype: "fuse.carrel", rest: []string{"default_permissions"}}
	if o.AllowOther {
		m.rest = append(m.rest, "allow_other")
	}
	if o.ReadOnly {
		m.flags |= unix.MS_RDONLY
	}
	private, err := privateDir(dir)
	if err != nil {
		return nil, &MountError{Op: "mount", Dir: dir, Err: err}
	}
	defer os.RemoveAll(private)
	device, err := m.mount(dir)
	if err != nil {
		err, advice := mountAdvice(err)
		return nil, &MountError{Op: "mount", Dir: dir, Err: err, Advice: advice}
	}
	defer unix.Close(device)
	conn, err := adopt(device, dir, private)
	if err != nil {
		err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
		return nil, &MountError{Op: "mount", Dir: dir, Err: err}
	}
	return conn, nil
}

// adopt answers INIT on device and returns a connection of the library that uses a duplicate of it. From mount(2) to the
// first request that is served nothing may look at dir.
func adopt(device int, dir, private string) (*fuse.Conn, error) {
	request, err := answerInit(device)
	if err != nil {
		return nil, fmt.Errorf("answer INIT: %w", err)
	}
	var conn *fuse.Conn
	err = withHelper(private, initEnv, hex.EncodeToString(request), func() (err error) {
		conn, err = fuse.Mount(dir, initFlags(wantedFlags))
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(device, rawLayout.device(conn), unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("put the device in place: %w", err), conn.Close())
	}
	return conn, nil
}

// The layouts of INIT in <linux/fuse.h>.
const (
	inHeaderSize = 40 // length, opcode, unique, node, uid, gid, pid, padding
	initInSize   = 16 // major, minor, read-ahead, flags; more since 7.36
	initOutSize  = 64
	opInit       = 26

	minReadBuffer = 8 << 10 // the kernel reads into none that is shorter (FUSE_MIN_READ_BUFFER)
)

// answerInit reads INIT and answers it. It returns the INIT that says what was agreed on.
func answerInit(device int) (request []byte, err error) {
	request = make([]byte, minReadBuffer)
	n, err := unix.Read(device, request)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(device, request)
	}
	if err != nil {
		return nil, err
	}
	request = request[:n]
	out, err := agree(request)
	if err != nil {
		return nil, err
	}
	w := wire{fd: device}
	return request, w.write(out, 0, order.Uint64(request[8:]))
}

// agree returns the answer to an INIT, with room for its header, and puts the flags that are agreed on into the request.
func agree(request []byte) (out []byte, err error) {
	if len(request) < inHeaderSize+initInSize || order.Uint32(request[4:]) != opInit {
		return nil, fmt.Errorf("%d bytes that are not INIT: %w", len(request), unix.EPROTO)
	}
	in := request[inHeaderSize:]
	major, minor := order.Uint32(in), order.Uint32(in[4:])
	if major != protocolMajor || minor < protocolMinor {
		return nil, fmt.Errorf("the kernel speaks protocol %d.%d: %w", major, minor, unix.EPROTO)
	}
	flags := order.Uint32(in[12:]) & uint32(wantedFlags)
	order.PutUint32(in[12:], flags)
	out = make([]byte, outHeaderSize, outHeaderSize+initOutSize)
	for _, v := range [...]uint32{
		protocolMajor, protocolMinor, min(order.Uint32(in[8:]), maxReadahead), flags,
		0, // how many requests may wait in the background, and from when they are too many: as the kernel likes
		maxWrite,
		1, // nanoseconds in a step of a time
	} {
		out = order.AppendUint32(out, v)
	}
	out = order.AppendUint16(out, uint16(max(1, maxWrite/os.Getpagesize()))) // pages in a request
	return out[:cap(out)], nil
}

// passInit is the helper's part: it puts INIT into a socket and passes the other end of it to the library, where a real
// fusermount3 passes the device. A pair of this type keeps messages apart, and holds them when its one end is closed.
func passInit(socket int, request string) error {
	b, err := hex.DecodeString(request)
	if err != nil {
		return fmt.Errorf("mount helper: %s: %w", initEnv, err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount helper: socketpair: %w", err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if _, err := unix.Write(pair[0], b); err != nil {
		return fmt.Errorf("mount helper: write INIT: %w", err)
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(pair[1]), nil, 0); err != nil {
		return fmt.Errorf("mount helper: pass the socket: %w", err)
	}
	return nil
}

// lengthenReadahead lets the kernel read ahead as far as INIT offered; by itself it takes no more than 128 KiB, whatever
// is offered. Where /sys cannot be written, that is how it stays.
func lengthenReadahead(dir string) error {
	var st unix.Statx_t
	flags := unix.AT_STATX_DONT_SYNC | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if err := unix.Statx(unix.AT_FDCWD, dir, flags, unix.STATX_INO, &st); err != nil {
		return err
	}
	file := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", st.Dev_major, st.Dev_minor)
	return os.WriteFile(file, strconv.AppendInt(nil, maxReadahead>>10, 10), 0)
}
