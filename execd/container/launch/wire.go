package launch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Setup is the first message to outer. It answers with a Report.
type Setup struct {
	Hostname string
	Dirs     []string // made in the root, in order
	Binds    []Bind
	Links    []Link
	Tmpfs    []Tmpfs
	Loopback bool // the network is its own: bring loopback up

	Restrictions Restrictions // of every command
}

// Restrictions are what a command is not to have. Outer tells the first process of an exec before there is one, so that
// they are in force by then: the kernel takes its time over a filter.
type Restrictions struct {
	Caps   uint64 // those that commands keep, by number
	Filter []byte // of system calls, as seccomp(2) takes it
	Limits []Limit
}

// Bind is a directory or file of the host that is seen in the container.
type Bind struct {
	Source, Target string
	Writable       bool
	Devices        bool // device nodes work
	Optional       bool // left out when the host has none, or the root no place for it
}

// Link is a symlink in the container's root.
type Link struct {
	Name, Target string
}

// Tmpfs is a directory in memory.
type Tmpfs struct {
	Target string
	Mode   uint32
	Size   uint64
}

// Request is what outer is asked for then, as often as anybody likes. It answers with a Report.
type Request struct {
	// Place says where the tree is to be that goes with the request: one that open_tree(2) has detached. What outer has
	// started sees it too.
	Place *Bind
	// Runner asks for the first process of an exec. With the answer go the daemon's end of its socket and its pidfd. It is
	// under the limits that outer is under itself by then.
	Runner bool
}

// Command is the first message to inner, with the three standard descriptors of the command. It answers with a Report when
// the command has been started or could not be, with the master side of its terminal when it has one, and with another
// when the command has ended.
type Command struct {
	Args, Env []string
	Dir       string
	TTY       *Size
}

// Limit is a resource limit, for setrlimit(2).
type Limit struct {
	Resource int
	Max      uint64
}

// Size is that of a terminal.
type Size struct {
	Rows, Cols uint16
}

// Control is what inner is asked to do later.
type Control struct {
	Signal int // to the process group of the command
}

// Report is an answer.
type Report struct {
	// Step is what could not be done, with Errno; empty when all went well.
	Step  string
	Errno int
	// Program says that it has to do with the command's program: to find it, or to run what was found.
	Program bool
	// Exited says that Wait is the wait status of the command.
	Exited bool
	Wait   uint32
	Alone  bool // and nothing else of the exec runs
}

// Err returns the report as an error: nil when all went well.
func (r Report) Err() error {
	if r.Step == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", r.Step, unix.Errno(r.Errno))
}

// reportOf translates an error of the kernel.
func reportOf(step string, err error) Report {
	errno := unix.EIO
	errors.As(err, &errno)
	return Report{Step: step, Errno: int(errno)}
}

// maxMessage bounds a message: the arguments and the environment, escaped as JSON, with room for the rest.
const maxMessage = 8 << 20

// Conn sends and receives messages with descriptors: their length, 4 bytes, and JSON. Receiving and sending are each for
// one goroutine at a time.
type Conn struct{ file *os.File }

// NewConn takes a unix stream socket over.
func NewConn(f *os.File) *Conn { return &Conn{f} }

// Close closes the socket.
func (c *Conn) Close() error { return c.file.Close() }

// Send sends a message. The descriptors stay the caller's.
func (c *Conn) Send(v any, fds ...int) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	n, err := c.sendFirst(message, rights)
	if err == nil && n < len(message) {
		_, err = c.file.Write(message[n:])
	}
	return err
}

// sendFirst sends the descriptors and as much of a message as is taken with them: all of most, so that whoever waits for it
// is woken once.
func (c *Conn) sendFirst(message, rights []byte) (n int, err error) {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, sendErr = unix.SendmsgN(int(fd), message, rights, nil, unix.MSG_NOSIGNAL)
			if !errors.Is(sendErr, unix.EINTR) {
				return !errors.Is(sendErr, unix.EAGAIN)
			}
		}
	})
	return n, errors.Join(err, sendErr)
}

// Receive receives a message and the descriptors that came with it, which are close-on-exec: io.EOF when the other side
// is gone.
func (c *Conn) Receive(v any) (fds []int, err error) {
	head := make([]byte, 4)
	n, fds, err := c.receiveHead(head)
	if err == nil && n == 0 {
		return nil, io.EOF
	}
	if err == nil {
		_, err = io.ReadFull(c.file, head[n:])
	}
	size := binary.BigEndian.Uint32(head)
	if err == nil && size > maxMessage {
		err = fmt.Errorf("a message of %d bytes", size)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(fds))
	}
	body := make([]byte, size)
	if _, err = io.ReadFull(c.file, body); err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(fds))
	}
	return fds, nil
}

func (c *Conn) receiveHead(head []byte) (n int, fds []int, err error) {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*4))
	var oobn int
	var recvErr error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, recvErr = unix.Recvmsg(int(fd), head, oob, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(recvErr, unix.EINTR) {
				return !errors.Is(recvErr, unix.EAGAIN)
			}
		}
	})
	if err = errors.Join(err, recvErr); err != nil {
		return 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return 0, nil, err
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return 0, nil, errors.Join(err, closeAll(fds))
		}
		fds = slices.Concat(fds, some)
	}
	return n, fds, nil
}

func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
