package fuzz

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/mirror"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/wiretest/badlink"
)

// served is a store, served over QUIC at one end of a link, and mirrors at the other.
type served struct {
	t       *testing.T
	dir     string
	network *badlink.Network
	store   *casstore.Store
	tree    *casstore.Workspace
	dialer  syncwire.Dialer
}

// anybody lets everybody in.
type anybody struct{}

func (anybody) Verify(context.Context, []byte, string) (syncwire.Grant, error) {
	return syncwire.Grant{Subject: "tester", Rights: syncwire.RightRead | syncwire.RightWrite}, nil
}

func serveOver(t *testing.T, c badlink.Config) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir(), network: badlink.New(t, c)}
	var err error
	if s.store, err = casstore.Open(filepath.Join(s.dir, "store"), casstore.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.CreateWorkspace(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	if s.tree, err = s.store.OpenWorkspace(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := syncwire.NewIdentity(key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := badlink.In(s.network.Server, func() (syncwire.Listener, error) {
		return syncwire.ListenQUIC(badlink.ServerAddr.String()+":0", id)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.dialer = syncwire.DialQUICFrom(l.Addr().String(), id.Fingerprint(), func() (*net.UDPConn, error) {
		return badlink.In(s.network.Client, func() (*net.UDPConn, error) { return net.ListenUDP("udp", nil) })
	})
	authority := s.tree.Authority()
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return authority, nil },
		Verifier: anybody{},
	})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); err != nil {
			t.Error(err)
		}
		s.end()
	})
	return s
}

// end closes the store, in which everything must be sound.
func (s *served) end() {
	report, err := s.store.Check(context.Background(), casstore.CheckOptions{Bytes: true})
	if err != nil || len(report.Problems) > 0 {
		s.t.Errorf("check: %+v, %v", report, err)
	}
	if err := errors.Join(s.tree.Close(), s.store.Close()); err != nil {
		s.t.Error(err)
	}
}

// replica is a mirror of a test.
type replica struct {
	*mirror.Mirror
	t      *testing.T
	client *syncwire.Client
}

func (s *served) join(name string) *replica {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	id, err := mirror.Identity(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &replica{t: s.t, client: syncwire.NewClient(syncwire.ClientConfig{
		Dialer: s.dialer, Workspace: "demo", Mirror: id, Agent: name,
		Token: func(context.Context) ([]byte, error) { return []byte("secret"), nil },
	})}
	if r.Mirror, err = mirror.Open(s.t.Context(), mirror.Config{Dir: dir, Peer: r.client, Name: name}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := errors.Join(r.Close(), r.client.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return r
}

// sync is a barrier: the mirror and the authority have the same afterwards.
func (r *replica) sync() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := r.Now(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// write makes a file of what there is in parts, through a temporary name, as an editor does.
func write(t *testing.T, tree vfs.Tree, name string, parts ...[]byte) {
	t.Helper()
	ctx := context.Background()
	a, err := tree.Create(ctx, vfs.RootIno, name+"~", vfs.NewNode{Mode: 0o644})
	off := uint64(0)
	for _, p := range parts {
		for len(p) > 0 && err == nil {
			n := min(len(p), 1<<20)
			err = tree.WriteAt(ctx, a.Ino, p[:n], off, false)
			p, off = p[n:], off+uint64(n)
		}
	}
	if err == nil {
		err = tree.Rename(ctx, vfs.RootIno, name+"~", vfs.RootIno, name, 0)
	}
	if err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}

// sums returns the hash of every file in the root.
func sums(t *testing.T, tree vfs.Tree) map[string][sha256.Size]byte {
	t.Helper()
	names, all := map[string]vfs.Ino{}, map[string][sha256.Size]byte{}
	err := tree.ReadDir(context.Background(), vfs.RootIno, 0, func(d vfs.Dirent) bool {
		names[d.Name] = d.Ino
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, ino := range names {
		all[name] = sum(t, tree, ino)
	}
	return all
}

func sum(t *testing.T, tree vfs.Tree, ino vfs.Ino) (s [sha256.Size]byte) {
	t.Helper()
	h, buf := sha256.New(), make([]byte, 1<<20)
	for off := uint64(0); ; {
		n, err := tree.ReadAt(context.Background(), ino, buf, off)
		if err != nil {
			t.Fatalf("read inode %d: %v", ino, err)
		}
		if n == 0 {
			h.Sum(s[:0])
			return s
		}
		h.Write(buf[:n])
		off += uint64(n)
	}
}

// A mirror pushes files, small and large, to a store over a bad link that is cut and takes its address away; another
// follows, and one that comes later takes a snapshot, and the link is cut again. All have the same in the end, each file
// once.
func TestStoreOverBadLink(t *testing.T) {
	t.Parallel()
	const files = 120
	seed := number(t, "VFSTEST_SEED", 1)
	s := serveOver(t, badlink.Slow(uint64(seed)))
	writer, follower := s.join("writer"), s.join("follower")
	follower.sync()
	random := rand.NewChaCha8([32]byte{byte(seed)})
	want := map[string][sha256.Size]byte{}
	for i := range files {
		size := 100 + 30*i
		if i%40 == 0 { // in chunks, which are fetched when they are read; the others are in their records
			size = 300_000
		}
		body := make([]byte, size)
		random.Read(body)
		name := fmt.Sprint("file", i)
		write(t, writer.Tree(), name, body)
		want[name] = sha256.Sum256(body)
	}
	for after, f := range map[time.Duration]func(){
		500 * time.Millisecond: func() { s.network.SetCut(true) }, 1500 * time.Millisecond: func() { s.network.SetCut(false) },
		2 * time.Second: s.network.Move,
	} {
		defer time.AfterFunc(after, f).Stop()
	}
	writer.sync()
	follower.sync()

	late := s.join("late")
	defer time.AfterFunc(150*time.Millisecond, func() { s.network.SetCut(true) }).Stop()
	defer time.AfterFunc(1150*time.Millisecond, func() { s.network.SetCut(false) }).Stop()
	late.sync()
	for name, tree := range map[string]vfs.Tree{
		"the store": s.tree, "writer": writer.Tree(), "follower": follower.Tree(), "late": late.Tree(),
	} {
		got := sums(t, tree)
		if len(got) != len(want) {
			t.Errorf("%s has %d files, want %d", name, len(got), len(want))
		}
		for file, sum := range want {
			if got[file] != sum {
				t.Errorf("%s: %s is another", name, file)
			}
		}
	}
	up, down := s.network.Counts()
	if up.Cut == 0 || up.Lost == 0 || down.Lost == 0 {
		t.Errorf("the link was too good: %+v, %+v", up, down)
	}
}
