package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// SocketName is the name of the owner's socket in a store's directory.
const SocketName = "control.sock"

// Listen makes the socket of the store in dir, with mode 0600. The caller must hold the store's lock: a socket that is
// there was left by an owner that died, and is replaced. Closing the listener removes the socket.
func Listen(dir string) (net.Listener, error) {
	at, err := openSocketDir(dir)
	if err != nil {
		return nil, err
	}
	l, err := listenAt(at, filepath.Join(dir, SocketName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", filepath.Join(dir, SocketName), err), at.close())
	}
	return l, nil
}

// listenAt binds under a name of this process and renames it, so that a client sees the old socket, which refuses it,
// or the new one, and never none.
func listenAt(at socketDir, path string) (net.Listener, error) {
	temp := SocketName + "." + strconv.Itoa(os.Getpid())
	if err := os.Remove(at.path(temp)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The mode that the socket has before bind(2) is the one that its file gets: no moment with a wider one.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmodErr error
		err := c.Control(func(fd uintptr) { chmodErr = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, chmodErr)
	}}
	l, err := lc.Listen(context.Background(), "unix", at.path(temp))
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Rename(at.path(temp), at.path(SocketName)); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(at.path(temp)))
	}
	return &listener{Listener: l, dir: at, file: path}, nil
}

// listener removes its socket when it is closed, which is before the store's lock is let go of.
type listener struct {
	net.Listener
	dir  socketDir
	file string
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	if rmErr := os.Remove(l.dir.path(SocketName)); !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	return errors.Join(err, l.dir.close())
}

// DialSocket connects to the socket of the owner of the store in dir, for what [Server.Handle] serves there: ErrNoOwner when
// there is none.
func DialSocket(ctx context.Context, dir string) (net.Conn, error) {
	at, err := openSocketDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, ErrNoOwner
	}
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", at.path(SocketName))
	closeErr := at.close()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, ErrNoOwner
	case err != nil:
		return nil, err
	case closeErr != nil:
		return nil, errors.Join(closeErr, conn.Close())
	}
	return conn, nil
}

// socketDir names files in a directory by paths that fit a socket's address, whatever the directory's own length.
type socketDir struct {
	dir  string
	file *os.File // nil when dir is short enough by itself
}

func openSocketDir(dir string) (socketDir, error) {
	const longestName = len(SocketName) + len("/.") + len("4194304") // the largest pid
	if len(dir)+longestName <= maxSocketPath {
		_, err := os.Stat(dir)
		return socketDir{dir: dir}, err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return socketDir{}, err
	}
	return socketDir{dir: "/proc/self/fd/" + strconv.Itoa(int(f.Fd())), file: f}, nil
}

func (d socketDir) path(name string) string { return d.dir + "/" + name }

func (d socketDir) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
