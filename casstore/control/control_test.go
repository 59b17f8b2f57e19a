package control_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A workspace over the socket is a tree like any other. That a file has 65,000 links at most is the store's affair, and half a minute
// of calls here.
func TestConformance(t *testing.T) {
	vfstest.RunSome(t, func(name string) bool { return name != "Link/LinksHaveAMaximum" }, func(t *testing.T) vfs.Tree {
		_, w, _ := openRemote(t)
		return w
	})
}

func TestStoreOperations(t *testing.T) {
	store := newMemStore()
	dir, _ := serve(t, store, nil)
	c, ctx := dial(t, dir), t.Context()
	if in, err := c.CreateWorkspace(ctx, "a\xff"); err != nil || in.Name != "a\xff" {
		t.Errorf("CreateWorkspace = %+v, %v", in, err)
	}
	if _, err := c.CreateWorkspace(ctx, "a\xff"); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("a second CreateWorkspace: %v, want ErrExist", err)
	}
	if in, err := c.Info(ctx, "a\xff"); err != nil || in.Rev != 7 {
		t.Errorf("Info = %+v, %v", in, err)
	}
	if err := c.RenameWorkspace(ctx, "a\xff", "b"); err != nil {
		t.Error(err)
	}
	if infos, err := c.Workspaces(ctx); err != nil || len(infos) != 1 || infos[0].Name != "b" {
		t.Errorf("Workspaces = %+v, %v", infos, err)
	}
	w, err := c.OpenWorkspace(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveWorkspace(ctx, "b"); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("RemoveWorkspace of an open one: %v, want ErrWorkspaceBusy", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Stat(ctx, vfs.RootIno); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("Stat after Close: %v, want ErrClosed", err)
	}
	if err := c.RemoveWorkspace(ctx, "b"); err != nil {
		t.Error(err)
	}
	if _, err := c.OpenWorkspace(ctx, "b"); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("OpenWorkspace of none: %v, want ErrNoWorkspace", err)
	}
	if _, err := c.GC(ctx); err != nil {
		t.Error(err)
	}
}

func TestCheckReportsProgress(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	var seen []string
	report, err := dial(t, dir).Check(t.Context(), casstore.CheckOptions{
		Progress: func(done, total uint64) { seen = append(seen, fmt.Sprint(done, "/", total)) },
	})
	if err != nil || report.Records != 3 || len(report.Problems) != 1 {
		t.Errorf("Check = %+v, %v", report, err)
	}
	if got := strings.Join(seen, " "); got != "1/3 2/3 3/3" {
		t.Errorf("progress %q", got)
	}
}

// Every sentinel is the same one at the other side, with the text that the owner gave it.
func TestErrorsTravel(t *testing.T) {
	store := newMemStore()
	dir, _ := serve(t, store, nil)
	c := dial(t, dir)
	for _, sentinel := range append(vfs.Errors(), errors.New("an error of no sentinel")) {
		store.fail = fmt.Errorf("rename 7/%q: %w", "a", sentinel)
		_, err := c.Stats(t.Context())
		if err == nil || err.Error() != store.fail.Error() {
			t.Errorf("error %v, want %v", err, store.fail)
		}
		for _, other := range vfs.Errors() {
			if got, want := errors.Is(err, other), errors.Is(store.fail, other); got != want {
				t.Errorf("errors.Is(%v, %v) = %t, want %t", err, other, got, want)
			}
		}
	}
	store.fail = context.Canceled
	if _, err := c.Stats(t.Context()); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("a cancelled context travelled as %v, want ErrInterrupted", err)
	}
}

func TestBytesOfAnyLength(t *testing.T) {
	_, w, _ := openRemote(t)
	ctx := t.Context()
	a, err := w.Create(ctx, vfs.RootIno, "big", vfs.NewNode{Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	p := []byte(strings.Repeat("0123456789abcdef", 3*control.MaxTransfer/16+5))
	if err := w.WriteAt(ctx, a.Ino, p, 11, false); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(p)+100)
	n, err := w.ReadAt(ctx, a.Ino, got, 11)
	if err != nil || n != len(p) || string(got[:n]) != string(p) {
		t.Errorf("ReadAt = %d, %v, want %d equal bytes", n, err, len(p))
	}
}

// A client that vanishes keeps no inode alive and no workspace open.
func TestClientDrops(t *testing.T) {
	store := newMemStore()
	dir, server := serve(t, store, nil)
	ctx := t.Context()
	c, err := control.Dial(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateWorkspace(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	w, err := c.OpenWorkspace(ctx, "demo")
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.Create(ctx, vfs.RootIno, "f", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	w.Hold(a.Ino)
	w.Hold(a.Ino)
	w.Release(a.Ino, 1)
	if err := w.Unlink(ctx, vfs.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stat(ctx, a.Ino); err != nil {
		t.Errorf("a held inode: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if n := store.opened("demo"); n != 0 {
		t.Errorf("%d workspaces are open", n)
	}
	if _, err := store.trees["demo"].Stat(ctx, a.Ino); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("the inode that the client held: %v, want ErrStale", err)
	}
}

// A release of more than was held takes nothing from other clients.
func TestReleaseIsBounded(t *testing.T) {
	store, w, _ := openRemote(t)
	ctx := t.Context()
	a, err := w.Create(ctx, vfs.RootIno, "f", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	local := store.trees["demo"]
	local.Hold(a.Ino)
	w.Hold(a.Ino)
	w.Release(a.Ino, 100)
	if err := w.Unlink(ctx, vfs.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Stat(ctx, a.Ino); err != nil {
		t.Errorf("an inode that another holds: %v", err)
	}
	local.Release(a.Ino, 1)
}

func TestOwnerDies(t *testing.T) {
	store := newMemStore()
	dir, server := serve(t, store, nil)
	c := dial(t, dir)
	if _, err := c.CreateWorkspace(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	w, err := c.OpenWorkspace(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	stop := w.Watch(nil, func(vfs.Change) {})
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Gone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stat(t.Context(), vfs.RootIno); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("Stat without an owner: %v, want ErrClosed", err)
	}
	stop()
	if _, err := control.Dial(t.Context(), dir); !errors.Is(err, control.ErrNoOwner) {
		t.Errorf("Dial without an owner: %v, want ErrNoOwner", err)
	}
}

// slowMounts waits until it is cancelled.
type slowMounts struct{ entered chan struct{} }

func (m *slowMounts) wait(ctx context.Context) error {
	m.entered <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (m *slowMounts) Mount(ctx context.Context, _ control.Mount) error    { return m.wait(ctx) }
func (m *slowMounts) Unmount(context.Context, string, bool) (bool, error) { return true, nil }
func (m *slowMounts) WaitUnmount(ctx context.Context, _ string) error     { return m.wait(ctx) }
func (m *slowMounts) Mounts(context.Context) ([]control.Mount, error) {
	return []control.Mount{{Workspace: "demo", Dir: "/mnt/demo", ReadOnly: true}}, nil
}

func TestCancelReachesTheOwner(t *testing.T) {
	m := &slowMounts{entered: make(chan struct{})}
	dir, _ := serve(t, newMemStore(), m)
	c := dial(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Mount(ctx, control.Mount{}) }()
	<-m.entered
	cancel()
	if err := <-ended; !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("a cancelled call: %v, want ErrInterrupted", err)
	}
	if err := c.WaitUnmount(ctx, "/"); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("a call with a context that has ended: %v, want ErrInterrupted", err)
	}
	list, err := c.Mounts(t.Context())
	if err != nil || len(list) != 1 || list[0].Dir != "/mnt/demo" || !list[0].ReadOnly {
		t.Errorf("Mounts = %+v, %v", list, err)
	}
	if last, err := c.Unmount(t.Context(), "/mnt/demo", false); err != nil || !last {
		t.Errorf("Unmount = %t, %v", last, err)
	}
}

func TestOwnerThatMountsNothing(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c := dial(t, dir)
	if c.Owner().Mounts || c.Owner().PID != os.Getpid() {
		t.Errorf("Owner = %+v", c.Owner())
	}
	if err := c.Mount(t.Context(), control.Mount{}); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("Mount: %v, want ErrNotSupported", err)
	}
}

// Changes come back to their maker with its own origin, and to others with none.
func TestWatchOrigins(t *testing.T) {
	store, w, _ := openRemote(t)
	type mine struct{ n int }
	changes := make(chan vfs.Change, 16)
	stop := w.Watch(nil, func(c vfs.Change) {
		if c.Kind == vfs.ChangeEntry {
			changes <- c
		}
	})
	defer stop()
	ctx := vfs.WithOrigin(t.Context(), mine{4})
	if _, err := w.Create(ctx, vfs.RootIno, "a", vfs.NewNode{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.trees["demo"].Create(ctx, vfs.RootIno, "b", vfs.NewNode{}); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.Name != "a" || c.Origin != (mine{4}) {
		t.Errorf("own change %+v", c)
	}
	if c := <-changes; c.Name != "b" || c.Origin != nil {
		t.Errorf("another's change %+v", c)
	}
}

// A watcher is not told of the changes that it skips.
func TestWatchSkips(t *testing.T) {
	_, w, _ := openRemote(t)
	type who string
	names := make(chan string, 16)
	stop := w.Watch(who("me"), func(c vfs.Change) {
		if c.Kind == vfs.ChangeEntry {
			names <- c.Name
		}
	})
	defer stop()
	for i, origin := range []any{who("me"), who("you"), who("me"), nil} {
		ctx := t.Context()
		if origin != nil {
			ctx = vfs.WithOrigin(ctx, origin)
		}
		if _, err := w.Create(ctx, vfs.RootIno, fmt.Sprint(i), vfs.NewNode{}); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := <-names, <-names; first != "1" || second != "3" {
		t.Errorf("told of %q and %q, want 1 and 3", first, second)
	}
}

func TestManyWatches(t *testing.T) {
	_, w, _ := openRemote(t)
	var stops []func()
	for range 8 {
		stops = append(stops, w.Watch(nil, func(vfs.Change) {}))
	}
	stops[0]()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for _, stop := range stops {
		stop() // again, or after Close: harmless
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	newer := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Carrel-Protocol", "99")
		w.Header().Set("Carrel-Pid", "4242")
		w.WriteHeader(http.StatusUpgradeRequired)
	})}
	ended := make(chan error, 1)
	go func() { ended <- newer.Serve(l) }()
	_, err = control.Dial(t.Context(), dir)
	if !errors.Is(err, control.ErrVersion) || !strings.Contains(err.Error(), "4242") {
		t.Errorf("Dial: %v, want ErrVersion that names the process", err)
	}
	if err := newer.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// What does not speak the protocol is answered in HTTP, and other interfaces share the socket.
func TestHTTP(t *testing.T) {
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := control.NewServer(newMemStore(), nil, nil)
	server.Handle("GET /other", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(dir, control.SocketName))
	}}
	for path, want := range map[string]int{"/other": 299, "/control": http.StatusUpgradeRequired, "/none": 404} {
		resp, err := (&http.Client{Transport: transport}).Get("http://carrel" + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	transport.CloseIdleConnections()
	if err := errors.Join(server.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

func TestSocket(t *testing.T) {
	long := longDir(t)
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"short path": t.TempDir(), "long path": long} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, control.SocketName)
			if _, err := control.Dial(t.Context(), dir); !errors.Is(err, control.ErrNoOwner) {
				t.Fatalf("Dial without a socket: %v, want ErrNoOwner", err)
			}
			leaveStaleSocket(t, dir)
			if _, err := control.Dial(t.Context(), dir); !errors.Is(err, control.ErrNoOwner) {
				t.Fatalf("Dial to a dead owner's socket: %v, want ErrNoOwner", err)
			}
			_, server := serveIn(t, dir, newMemStore(), nil)
			if _, err := dial(t, dir).Workspaces(t.Context()); err != nil {
				t.Error(err)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != fs.ModeSocket|0o600 {
				t.Errorf("the socket is %v, %v", info, err)
			}
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// leaveStaleSocket leaves what a killed owner does: a socket's file that nobody listens on.
func leaveStaleSocket(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), control.SocketName)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd)); err != nil {
		t.Fatal(err)
	}
}

func TestDialOfNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/none", file + "-none"} {
		if _, err := control.Dial(t.Context(), dir); !errors.Is(err, control.ErrNoOwner) {
			t.Errorf("Dial %s: %v, want ErrNoOwner", dir, err)
		}
	}
}

// An owner that hangs before it answers is given up, not waited for.
func TestSilentOwner(t *testing.T) {
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := control.Dial(ctx, dir); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("Dial: %v, want ErrBusy", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestDrainWaitsForClients(t *testing.T) {
	store := newMemStore()
	dir, server := serve(t, store, nil)
	c := dial(t, dir)
	drained := make(chan error, 1)
	go func() { drained <- server.Drain(context.Background()) }()
	for { // the listener goes first
		other, err := control.Dial(t.Context(), dir)
		if errors.Is(err, control.ErrNoOwner) {
			break
		}
		if err == nil {
			err = other.Close()
		}
		if err != nil && !errors.Is(err, vfs.ErrClosed) {
			t.Fatal(err)
		}
	}
	if _, err := c.CreateWorkspace(t.Context(), "late"); err != nil {
		t.Errorf("a client that was there: %v", err)
	}
	if n := server.Busy(); n < 1 {
		t.Errorf("Busy = %d", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}
