package fusefs

import (
	"encoding/binary"
	"os"
	"reflect"
	"syscall"
	"unsafe"

	"bazil.org/fuse"
)

// This file and handshake.go are all that reaches past the public face of bazil.org/fuse. The library is frozen, so
// what is found here by name cannot change under us; the layout is checked all the same when the program starts, and if
// a check fails the plain ways of the library are used:
//
//	trick                                  without it
//	whole: the memory of a request         long replies are built in memory of their own
//	body: the bytes of an unknown request  the request is answered ENOSYS
//	fd:   write replies ourselves          replies are copied through ReadRequest.Respond, and a reply that the
//	                                       kernel no longer wants is not noticed
//	fd:   FUSE_NOTIFY_INC_EPOCH            the queue of notifications grows instead of collapsing
//	init: flags without an option          READDIRPLUS and file handles are not negotiated

// layout holds the offsets of the library's private fields, or ok false.
type layout struct {
	msg uintptr // Header.msg, a *message
	buf uintptr // message.buf, a []byte: the whole request
	off uintptr // message.off, an int: where its body starts
	dev uintptr // Conn.dev, an *os.File
	ok  bool
}

var rawLayout = findLayout(reflect.TypeFor[fuse.Header](), reflect.TypeFor[fuse.Conn]())

// findLayout looks the private fields up by name and checks their types.
func findLayout(header, conn reflect.Type) layout {
	msg, ok1 := header.FieldByName("msg")
	dev, ok2 := conn.FieldByName("dev")
	if !ok1 || !ok2 || dev.Type != reflect.TypeFor[*os.File]() {
		return layout{}
	}
	if msg.Type.Kind() != reflect.Pointer || msg.Type.Elem().Kind() != reflect.Struct {
		return layout{}
	}
	buf, ok1 := msg.Type.Elem().FieldByName("buf")
	off, ok2 := msg.Type.Elem().FieldByName("off")
	if !ok1 || !ok2 || buf.Type != reflect.TypeFor[[]byte]() || off.Type != reflect.TypeFor[int]() {
		return layout{}
	}
	return layout{msg: msg.Offset, buf: buf.Offset, off: off.Offset, dev: dev.Offset, ok: true}
}

// body returns the bytes after the header of a request, good until it is answered, or nil when they cannot be reached.
func (l layout) body(h *fuse.Header) []byte {
	if !l.ok {
		return nil
	}
	msg := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(h), l.msg))
	if msg == nil {
		return nil
	}
	buf := *(*[]byte)(unsafe.Add(msg, l.buf))
	off := *(*int)(unsafe.Add(msg, l.off))
	if off < 0 || off > len(buf) {
		return nil
	}
	return buf[off:]
}

// whole returns the memory that holds a request, all of it, or nil. Its bytes are the request until they are written
// over.
func (l layout) whole(h *fuse.Header) []byte {
	if !l.ok {
		return nil
	}
	msg := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(h), l.msg))
	if msg == nil {
		return nil
	}
	buf := *(*[]byte)(unsafe.Add(msg, l.buf))
	return buf[:cap(buf)]
}

// device returns the descriptor of a connection, or -1. It is closed by Conn.Close, which the owner of the mount calls
// last of all.
func (l layout) device(c *fuse.Conn) int {
	if !l.ok {
		return -1
	}
	dev := *(**os.File)(unsafe.Add(unsafe.Pointer(c), l.dev))
	if dev == nil {
		return -1
	}
	return int(dev.Fd())
}

// initFlags returns an option of Mount that asks the kernel for features which the library has no option for. An option
// is a function of a type that cannot be named, so it is made by reflection.
func initFlags(flags fuse.InitFlags) fuse.MountOption {
	set := func(args []reflect.Value) []reflect.Value {
		if f := args[0].Elem().FieldByName("initFlags"); f.IsValid() && f.Type() == reflect.TypeFor[fuse.InitFlags]() {
			*(*fuse.InitFlags)(unsafe.Pointer(f.UnsafeAddr())) |= flags
		}
		return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
	}
	return reflect.MakeFunc(reflect.TypeFor[fuse.MountOption](), set).Interface().(fuse.MountOption)
}

// outHeaderSize is the length of fuse_out_header: length, error, unique.
const outHeaderSize = 16

// wire answers requests and sends notifications. It is safe for concurrent use.
type wire struct {
	*fuse.Conn
	fd int // -1 when only the library's ways are left
}

// reply answers h with the body out[outHeaderSize:]; the space before it is for the header. The request's bytes are
// gone afterwards. An error means that the kernel no longer waits for the answer.
func (w *wire) reply(h *fuse.Header, out []byte) error {
	if w.fd < 0 {
		(&fuse.ReadRequest{Header: *h}).Respond(&fuse.ReadResponse{Data: out[outHeaderSize:]})
		return nil
	}
	err := w.write(out, 0, uint64(h.ID))
	release(h)
	return err
}

// fail answers h with an error.
func (w *wire) fail(h *fuse.Header, errno syscall.Errno) error {
	if w.fd < 0 {
		h.RespondError(errno)
		return nil
	}
	var out [outHeaderSize]byte
	err := w.write(out[:], -int32(errno), uint64(h.ID))
	release(h)
	return err
}

// release gives the request's buffer back to the library without an answer, which is what it does for a FORGET.
func release(h *fuse.Header) { (&fuse.ForgetRequest{Header: *h}).Respond() }

func (w *wire) write(out []byte, code int32, unique uint64) error {
	binary.NativeEndian.PutUint32(out, uint32(len(out)))
	binary.NativeEndian.PutUint32(out[4:], uint32(code))
	binary.NativeEndian.PutUint64(out[8:], unique)
	for {
		_, err := syscall.Write(w.fd, out)
		if err != syscall.EINTR {
			return err
		}
	}
}

// notifyIncEpoch is FUSE_NOTIFY_INC_EPOCH (Linux 6.16): every name that the kernel has cached must be looked up again.
const notifyIncEpoch = 8

// expireNames makes the kernel look every name up again. It fails where the kernel does not know how.
func (w *wire) expireNames() error {
	if w.fd < 0 {
		return syscall.ENOSYS
	}
	var out [outHeaderSize]byte
	return w.write(out[:], notifyIncEpoch, 0)
}
