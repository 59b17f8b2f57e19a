package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/exclusive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is an authority, and mirrors of it, in one process. Between them is the protocol over sockets that can be cut.
type lab struct {
	t      testing.TB
	dir    string
	store  *casstore.Store
	ws     *casstore.Workspace
	server *syncwire.Server
	served chan error
	nodes  []*node
	guard  *exclusive.Guard // nil for none
	life   byte             // how often the store was put back
	oldest vfs.Rev          // what has changed before cannot be told
}

// node is a mirror.
type node struct {
	*Mirror
	lab    *lab
	n      int
	wire   *wire
	dialer syncwire.Dialer // instead of the wire, or nil
	client *syncwire.Client
	config Config
	spy    spy
}

// wire is a way to the server that can be cut.
type wire struct {
	path string

	mu    sync.Mutex
	down  bool
	links []syncwire.Link
}

var errCut = errors.New("the wire is cut")

func (w *wire) Dial(ctx context.Context) (syncwire.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errCut
	}
	l, err := syncwire.DialUnix(w.path).Dial(ctx)
	if err == nil {
		w.links = append(w.links, l)
	}
	return l, err
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for _, l := range w.links {
		l.Close()
	}
	w.links = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

// spy is the way of a mirror to its authority, with what a test wants to go wrong on it. Its hooks may be nil.
type spy struct {
	Peer
	follow   func(ctx context.Context) error // before a feed begins
	records  func([]vfs.Record) (int, error) // how many of records that a feed brings arrive, and how it then ends
	update   func() error                    // before an update of a feed is taken over
	read     func(*vfs.Chunk) bool           // changes a chunk that comes, or reports that it is to be left out
	write    func([]vfs.Chunk) []vfs.Chunk   // what of chunks arrives
	pushed   func(vfs.Push)                  // before a push
	answered func(vfs.Outcome) error         // after one

	mu    sync.Mutex
	acked []vfs.Rev
}

func (s *spy) Acknowledge(rev vfs.Rev) {
	s.mu.Lock()
	s.acked = append(s.acked, rev)
	s.mu.Unlock()
	s.Peer.Acknowledge(rev)
}

func (s *spy) Follow(ctx context.Context, in vfs.InoRange, f syncwire.Follower) error {
	if s.follow != nil {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	if s.records != nil {
		f = &cutFollower{f, s.records}
	}
	if s.update != nil {
		f = &updateFollower{f, s.update}
	}
	return s.Peer.Follow(ctx, in, f)
}

// cutFollower is a feed that may end anywhere.
type cutFollower struct {
	syncwire.Follower
	cut func([]vfs.Record) (int, error)
}

func (f *cutFollower) Records(got []vfs.Record) error {
	n, err := f.cut(got)
	if n > 0 {
		err = errors.Join(f.Follower.Records(got[:n]), err)
	}
	return err
}

// updateFollower is a feed whose updates are seen, and may end it.
type updateFollower struct {
	syncwire.Follower
	seen func() error
}

func (f *updateFollower) Update(u syncwire.FeedUpdate) error {
	if err := f.seen(); err != nil {
		return err
	}
	return f.Follower.Update(u)
}

func (s *spy) ReadChunks(ctx context.Context, ids []chunk.ID, yield func(vfs.Chunk) error) error {
	return s.Peer.ReadChunks(ctx, ids, func(c vfs.Chunk) error {
		if s.read != nil && s.read(&c) {
			return nil
		}
		return yield(c)
	})
}

func (s *spy) WriteChunks(ctx context.Context, list []vfs.Chunk) error {
	if s.write != nil {
		list = s.write(list)
	}
	return s.Peer.WriteChunks(ctx, list)
}

func (s *spy) PushWith(ctx context.Context, p vfs.Push, ids []chunk.ID, from vfs.Chunks) (vfs.Outcome, error) {
	if s.pushed != nil {
		s.pushed(p)
	}
	o, err := s.Peer.PushWith(ctx, p, ids, from)
	if err == nil && s.answered != nil {
		err = s.answered(o)
	}
	return o, err
}

// reborn is an authority in another life: with an epoch that is not its store's.
type reborn struct {
	vfs.Authority
	life byte
}

func (r *reborn) other(p vfs.Position, err error) (vfs.Position, error) {
	p.Epoch[0] += r.life
	return p, err
}

func (r *reborn) Position(ctx context.Context) (vfs.Position, error) {
	return r.other(r.Authority.Position(ctx))
}

func (r *reborn) Wait(ctx context.Context, after vfs.Rev) (vfs.Position, error) {
	return r.other(r.Authority.Wait(ctx, after))
}

func (r *reborn) Barrier(ctx context.Context) (vfs.Position, error) {
	return r.other(r.Authority.Barrier(ctx))
}

func (r *reborn) Read(ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	if q.Since != (vfs.Cursor{}) {
		q.Since.Epoch[0] -= r.life
	}
	return r.other(r.Authority.Read(ctx, q, yield))
}

func (r *reborn) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	o, err := r.Authority.Push(ctx, peer, p)
	o.Position.Epoch[0] += r.life
	return o, err
}

// forgetful is an authority that does not know what has changed up to a revision.
type forgetful struct {
	vfs.Authority
	oldest vfs.Rev
}

func (f *forgetful) Position(ctx context.Context) (vfs.Position, error) {
	p, err := f.Authority.Position(ctx)
	p.Oldest = max(p.Oldest, f.oldest)
	return p, err
}

func (f *forgetful) Read(ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	if q.Since != (vfs.Cursor{}) && q.Since.Rev < f.oldest {
		return vfs.Position{}, vfs.ErrVoidCursor
	}
	return f.Authority.Read(ctx, q, yield)
}

type anybody struct{}

func (anybody) Verify(context.Context, []byte, string) (syncwire.Grant, error) {
	return syncwire.Grant{Subject: "tester", Rights: syncwire.RightRead | syncwire.RightWrite}, nil
}

func testLog() *slog.Logger {
	if os.Getenv("CARREL_TEST_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newLab has an authority and n mirrors of it.
func newLab(t testing.TB, n int) *lab {
	l := &lab{t: t, dir: t.TempDir()}
	l.open()
	t.Cleanup(l.close)
	for range n {
		l.join()
	}
	return l
}

func (l *lab) open() {
	l.t.Helper()
	ctx := context.Background()
	var err error
	if l.store, err = casstore.Open(filepath.Join(l.dir, "authority"), casstore.Options{Create: true}); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.store.CreateWorkspace(ctx, "demo"); err != nil && !errors.Is(err, vfs.ErrExist) {
		l.t.Fatal(err)
	}
	if l.ws, err = l.store.OpenWorkspace(ctx, "demo"); err != nil {
		l.t.Fatal(err)
	}
	l.serve()
}

func (l *lab) serve() {
	l.t.Helper()
	socket := filepath.Join(l.dir, "sync.sock")
	listener, err := syncwire.ListenUnix(socket)
	if err != nil {
		l.t.Fatal(err)
	}
	authority := vfs.Authority(l.ws.Authority())
	if l.life > 0 {
		authority = &reborn{authority, l.life}
	}
	if l.oldest > 0 {
		authority = &forgetful{authority, l.oldest}
	}
	config := syncwire.ServerConfig{Verifier: anybody{}}
	if l.guard != nil {
		authority = l.guard.Wrap("demo", authority)
		config.Services = map[string]syncwire.Service{exclusive.ServiceName: l.guard.Service()}
	}
	config.Open = func(context.Context, string) (vfs.Authority, error) { return authority, nil }
	l.server = syncwire.NewServer(config)
	l.served = make(chan error, 1)
	server, served := l.server, l.served
	go func() { served <- server.Serve(context.Background(), listener) }()
}

// commit makes a revision of what was done to the authority's tree.
func (l *lab) commit() {
	l.t.Helper()
	if err := l.ws.Sync(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

// shut stops the authority.
func (l *lab) shut() {
	l.t.Helper()
	l.server.Close()
	if err := errors.Join(<-l.served, l.ws.Close(), l.store.Close()); err != nil {
		l.t.Error(err)
	}
}

func (l *lab) close() {
	for _, n := range l.nodes {
		n.leave()
	}
	l.shut()
}

// join adds a mirror.
func (l *lab) join(changes ...func(*Config)) *node {
	l.t.Helper()
	n := &node{lab: l, n: len(l.nodes), wire: &wire{path: filepath.Join(l.dir, "sync.sock")}}
	n.config = Config{
		Dir: filepath.Join(l.dir, fmt.Sprint("mirror", n.n)), Name: fmt.Sprint("m", n.n), Log: testLog(),
		commitEvery: 50 * time.Millisecond,
	}
	if n.config.Log != nil {
		n.config.Log = n.config.Log.With("mirror", n.n)
	}
	for _, change := range changes {
		change(&n.config)
	}
	l.nodes = append(l.nodes, n)
	n.start()
	return n
}

func (n *node) start() {
	n.lab.t.Helper()
	id, err := Identity(n.config.Dir)
	if err != nil {
		n.lab.t.Fatal(err)
	}
	dialer := n.dialer
	if dialer == nil {
		dialer = n.wire
	}
	n.client = syncwire.NewClient(syncwire.ClientConfig{
		Dialer: dialer, Workspace: "demo", Mirror: id,
		Token: func(context.Context) ([]byte, error) { return []byte("secret"), nil },
	})
	n.spy.Peer = n.client
	n.config.Peer = &n.spy
	if n.Mirror, err = Open(context.Background(), n.config); err != nil {
		n.lab.t.Fatal(err)
	}
}

// leave stops a mirror, which may be there no more.
func (n *node) leave() {
	if n.Mirror == nil {
		return
	}
	err := errors.Join(n.Mirror.Close(), n.client.Close())
	if err != nil {
		n.lab.t.Error(err)
	}
	n.Mirror = nil
}

// patience is how long a test waits for what hangs if it takes longer.
const patience = time.Minute

// sync is a barrier that must end.
func (n *node) sync() {
	n.lab.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Now(ctx); err != nil {
		n.lab.t.Fatal(err)
	}
}

// settle syncs all mirrors until nothing is left to be told, and checks that all have the same.
func (l *lab) settle() {
	l.t.Helper()
	for range 2 {
		for _, n := range l.nodes {
			n.sync()
		}
	}
	at, err := l.ws.Authority().Barrier(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	want := listing(l.t, l.ws)
	for _, n := range l.nodes {
		sums, err := n.replica.Theirs(context.Background(), []vfs.InoRange{vfs.AllInos})
		if err != nil || sums[0] != at.Digest {
			l.t.Errorf("mirror %d: digest %v, %v, want %v", n.n, sums, err, at.Digest)
		}
		if got := listing(l.t, n.Tree()); got != want {
			l.t.Errorf("mirror %d:\n%s\nthe authority:\n%s", n.n, got, want)
		}
		st, err := n.Status(context.Background())
		if err != nil || st.Pending > 0 || st.Mismatches > 0 {
			l.t.Errorf("mirror %d: %+v, %v", n.n, st, err)
		}
	}
}

// listing is everything in a tree, a line for each name.
func listing(t testing.TB, tree vfs.Tree) string {
	t.Helper()
	var lines []string
	var walk func(dir vfs.Ino, at string)
	walk = func(dir vfs.Ino, at string) {
		err := tree.ReadDir(context.Background(), dir, 0, func(d vfs.Dirent) bool {
			lines = append(lines, describe(t, tree, at+d.Name, d.Ino))
			if d.Type == vfs.TypeDir {
				walk(d.Ino, at+d.Name+"/")
			}
			return true
		})
		if err != nil {
			t.Errorf("list %d: %v", dir, err)
		}
	}
	walk(vfs.RootIno, "/")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describe(t testing.TB, tree vfs.Tree, name string, ino vfs.Ino) string {
	t.Helper()
	ctx := context.Background()
	a, err := tree.Stat(ctx, ino)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	line := fmt.Sprintf("%s %d mode %o links %d size %d mtime %d", name, ino, a.Mode, a.Nlink, a.Size, a.Mtime)
	switch a.Type {
	case vfs.TypeRegular:
		line += fmt.Sprintf(" %.40q", content(t, tree, ino))
	case vfs.TypeSymlink:
		s, err := tree.Readlink(ctx, ino)
		line += fmt.Sprint(" -> ", s, err)
	}
	names, err := tree.ListXattr(ctx, ino)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, x := range names {
		v, err := tree.GetXattr(ctx, ino, x)
		line += fmt.Sprintf(" %s=%q%v", x, v, err)
	}
	return line
}

func content(t testing.TB, tree vfs.Tree, ino vfs.Ino) string {
	t.Helper()
	b, err := io.ReadAll(&reader{tree: tree, ino: ino})
	if err != nil {
		t.Errorf("read %d: %v", ino, err)
	}
	return string(b)
}

type reader struct {
	tree vfs.Tree
	ino  vfs.Ino
	off  uint64
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.tree.ReadAt(context.Background(), r.ino, p, r.off)
	if r.off += uint64(n); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// files does things by path.
type files struct {
	t    testing.TB
	tree vfs.Tree
}

func on(t testing.TB, tree vfs.Tree) files { return files{t, tree} }

func (f files) find(p string) (dir vfs.Ino, name string) {
	f.t.Helper()
	dir = vfs.RootIno
	parts := strings.Split(strings.Trim(p, "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		a, err := f.tree.Lookup(context.Background(), dir, part)
		if err != nil {
			f.t.Fatalf("%s: %v", p, err)
		}
		dir = a.Ino
	}
	return dir, parts[len(parts)-1]
}

func (f files) ino(p string) vfs.Ino {
	f.t.Helper()
	dir, name := f.find(p)
	a, err := f.tree.Lookup(context.Background(), dir, name)
	if err != nil {
		f.t.Fatalf("%s: %v", p, err)
	}
	return a.Ino
}

func (f files) must(what string, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

func (f files) mkdir(p string) {
	f.t.Helper()
	dir, name := f.find(p)
	_, err := f.tree.Mkdir(context.Background(), dir, name, vfs.NewNode{Mode: 0o755})
	f.must("mkdir "+p, err)
}

// write makes a file of some content, or gives one another.
func (f files) write(p, s string) vfs.Ino {
	f.t.Helper()
	ctx := context.Background()
	dir, name := f.find(p)
	a, err := f.tree.Lookup(ctx, dir, name)
	if errors.Is(err, vfs.ErrNotExist) {
		a, err = f.tree.Create(ctx, dir, name, vfs.NewNode{Mode: 0o644})
	}
	f.must("create "+p, err)
	_, err = f.tree.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetSize})
	f.must("truncate "+p, err)
	f.must("write "+p, f.tree.WriteAt(ctx, a.Ino, []byte(s), 0, false))
	return a.Ino
}

func (f files) fsync(p string) {
	f.t.Helper()
	f.must("fsync "+p, f.tree.Fsync(context.Background(), f.ino(p)))
}

func (f files) remove(p string) {
	f.t.Helper()
	dir, name := f.find(p)
	f.must("unlink "+p, f.tree.Unlink(context.Background(), dir, name))
}

func (f files) rmdir(p string) {
	f.t.Helper()
	dir, name := f.find(p)
	f.must("rmdir "+p, f.tree.Rmdir(context.Background(), dir, name))
}

func (f files) link(old, p string) {
	f.t.Helper()
	ino := f.ino(old)
	dir, name := f.find(p)
	_, err := f.tree.Link(context.Background(), ino, dir, name)
	f.must("link "+p, err)
}

func (f files) rename(from, to string) {
	f.t.Helper()
	a, b := f.find(from)
	c, d := f.find(to)
	f.must("rename "+from, f.tree.Rename(context.Background(), a, b, c, d, 0))
}

func (f files) read(p string) string {
	f.t.Helper()
	return content(f.t, f.tree, f.ino(p))
}

// want checks what a file holds.
func (f files) want(p, s string) {
	f.t.Helper()
	if got := f.read(p); got != s {
		f.t.Errorf("%s holds %.60q, not %.60q", p, got, s)
	}
}

// names returns what is in a directory.
func (f files) names(p string) (out []string) {
	f.t.Helper()
	dir := vfs.RootIno
	if p != "/" {
		dir = f.ino(p)
	}
	err := f.tree.ReadDir(context.Background(), dir, 0, func(d vfs.Dirent) bool {
		out = append(out, path.Base(d.Name))
		return true
	})
	f.must("list "+p, err)
	slices.Sort(out)
	return out
}
