package mirror

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/wiretest/badlink"
)

// By default these tests are small. At full size:
//
//	go test ./mirror -run TestJoinFromAfar -v -files 100000 -bytes 2147483648
//	go test ./mirror -run TestNothingIsStale -v -trials 10000 -stale 1
//	go test ./mirror -run TestCacheIsBounded -v -read 21474836480 -cache 1073741824
var (
	sizeFiles  = flag.Int("files", 300, "how many files TestJoinFromAfar has")
	sizeBytes  = flag.Int("bytes", 1<<20, "how many bytes are in them")
	sizeTrials = flag.Int("trials", 15, "how often TestNothingIsStale changes something")
	staleSeed  = flag.Uint64("stale", 1, "the seed of what it changes")
	sizeRead   = flag.Int64("read", 16<<20, "how many bytes TestCacheIsBounded reads")
	sizeCache  = flag.Int64("cache", 4<<20, "with how large a cache")
)

// A mirror joins over 20 ms of round trip. What is first looked at does not wait for all to come.
func TestJoinFromAfar(t *testing.T) {
	l := newLab(t, 0)
	const perDir = 100
	f, body := on(t, l.ws), text(1, *sizeBytes / *sizeFiles + *sizeFiles)
	for i := range *sizeFiles {
		if i%perDir == 0 {
			f.mkdir(fmt.Sprint("/d", i/perDir))
		}
		f.write(fmt.Sprintf("/d%d/f%d", i/perDir, i), body[i:][:*sizeBytes / *sizeFiles])
	}
	l.commit()
	net := badlink.New(t, badlink.Config{Delay: 10 * time.Millisecond, Rate: 1 << 30, Queue: time.Second})
	n := l.far(net)
	began := time.Now()
	n.start()
	got, last := on(t, n.Tree()), *sizeFiles-1
	dirs := got.names("/")
	got.want(fmt.Sprintf("/d%d/f%d", last/perDir, last), body[last:][:*sizeBytes / *sizeFiles])
	first := time.Since(began)
	if err := n.AwaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files of %d bytes in all: the first ls and cat after %v, all metadata after %v", *sizeFiles, *sizeBytes,
		first.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	count := 0
	for _, dir := range dirs {
		count += len(got.names("/" + dir))
	}
	if count != *sizeFiles {
		t.Errorf("%d files, not %d", count, *sizeFiles)
	}
}

// far is a mirror, not started, that reaches the authority over a network.
func (l *lab) far(network *badlink.Network) *node {
	l.t.Helper()
	id, err := syncwire.NewIdentity(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		l.t.Fatal(err)
	}
	listener, err := badlink.In(network.Server, func() (syncwire.Listener, error) {
		return syncwire.ListenQUIC(badlink.ServerAddr.String()+":0", id)
	})
	if err != nil {
		l.t.Fatal(err)
	}
	served := make(chan error, 1)
	server := l.server
	go func() { served <- server.Serve(context.Background(), listener) }()
	l.t.Cleanup(func() {
		server.Close()
		<-served
	})
	n := &node{lab: l, n: len(l.nodes), wire: new(wire)}
	n.config = Config{Dir: filepath.Join(l.dir, fmt.Sprint("far", n.n)), Name: fmt.Sprint("m", n.n), Log: testLog()}
	n.dialer = syncwire.DialQUICFrom(listener.Addr().String(), id.Fingerprint(), func() (*net.UDPConn, error) {
		return badlink.In(network.Client, func() (*net.UDPConn, error) { return net.ListenUDP("udp", nil) })
	})
	l.nodes = append(l.nodes, n)
	return n
}

// One mirror truncates, lengthens, renames, removes and makes files. Another that reads sees no old size, no NUL and no name that is
// gone once it has had word of it, and after a barrier all of it.
func TestNothingIsStale(t *testing.T) {
	l := newLab(t, 0)
	a := l.join(func(c *Config) { c.commitEvery = 0 })
	b := l.join(func(c *Config) { c.commitEvery = 0 })
	rng, want, gone := rand.New(rand.NewPCG(*staleSeed, 1)), make(map[string]string), make(map[string]bool)
	names := []string{"a", "b", "c", "d", "e"}
	changed := make(chan struct{}, 1)
	stop := b.Tree().Watch(nil, func(vfs.Change) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	var took []time.Duration
	for trial := range *sizeTrials {
		select {
		case <-changed:
		default:
		}
		name := names[rng.IntN(len(names))]
		began := time.Now()
		change(t, a.Tree(), rng, name, want, gone)
		<-changed
		for !sees(t, b.Tree(), want, gone, true) {
			<-changed
		}
		took = append(took, time.Since(began))
		b.sync()
		if !sees(t, b.Tree(), want, gone, false) {
			t.Fatalf("trial %d", trial)
		}
	}
	slices.Sort(took)
	t.Logf("seen after %v in the median, %v at the 99th percentile, of %d", took[len(took)/2], took[len(took)*99/100], len(took))
}

// change does something to a file, and notes what there is then.
func change(t *testing.T, tree vfs.Tree, rng *rand.Rand, name string, want map[string]string, gone map[string]bool) {
	t.Helper()
	ctx, is, other := t.Context(), want[name], "new-"+name
	var err error
	switch k := rng.IntN(4); {
	case is == "":
		a, err := tree.Create(ctx, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
		want[name] = text(rng.Uint64(), 1+rng.IntN(20000))
		if err == nil {
			err = tree.WriteAt(ctx, a.Ino, []byte(want[name]), 0, false)
		}
		if delete(gone, name); err != nil {
			t.Fatal(err)
		}
		return
	case k == 0:
		want[name] = is[:1+rng.IntN(len(is))]
		_, err = tree.SetAttr(ctx, on(t, tree).ino(name), vfs.AttrSet{Mask: vfs.SetSize, Size: uint64(len(want[name]))})
	case k == 1:
		more := text(rng.Uint64(), 1+rng.IntN(20000))
		want[name] += more
		err = tree.WriteAt(ctx, on(t, tree).ino(name), []byte(more), uint64(len(is)), false)
	case k == 2:
		err = tree.Rename(ctx, vfs.RootIno, name, vfs.RootIno, other, 0)
		want[other], gone[name] = is, true
		delete(want, name)
		delete(gone, other)
	default:
		err = tree.Unlink(ctx, vfs.RootIno, name)
		gone[name] = true
		delete(want, name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sees reports whether a tree has what is wanted and nothing that is gone. That some of it is not there yet is no error early on.
func sees(t *testing.T, tree vfs.Tree, want map[string]string, gone map[string]bool, early bool) bool {
	t.Helper()
	for name, content := range want {
		a, err := tree.Lookup(t.Context(), vfs.RootIno, name)
		got := make([]byte, len(content)+1)
		n := 0
		if err == nil {
			n, err = tree.ReadAt(t.Context(), a.Ino, got, 0)
		}
		if err != nil || int(a.Size) != len(content) || string(got[:n]) != content {
			if !early {
				t.Errorf("%s: size %d, %d bytes of %d, %v", name, a.Size, n, len(content), err)
			}
			return false
		}
	}
	for name := range gone {
		if _, err := tree.Lookup(t.Context(), vfs.RootIno, name); !errors.Is(err, vfs.ErrNotExist) {
			if !early {
				t.Errorf("%s is gone and there: %v", name, err)
			}
			return false
		}
	}
	return true
}

// A mirror reads a workspace that is larger than its cache. Neither that nor its memory grows with it.
func TestCacheIsBounded(t *testing.T) {
	const size, slack = 8 << 20, 64 << 20
	l := newLab(t, 0)
	f, seeds := on(t, l.ws), *sizeRead/size
	fill := func(seed int64) string { // cheaper than as many random numbers
		b, rng := make([]byte, size), rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		_, _ = rng.Read(b)
		return string(b)
	}
	for i := range seeds {
		f.write(fmt.Sprint("/", i), fill(i))
	}
	l.commit()
	n := l.join(func(c *Config) { c.CacheBytes, c.Prefetch = *sizeCache, PrefetchNone })
	largest, heap := int64(0), uint64(0)
	for i := range seeds {
		on(t, n.Tree()).want(fmt.Sprint("/", i), fill(i))
		largest = max(largest, sizeOf(t, filepath.Join(n.config.Dir, "store", "packs")))
		if i%16 == 15 || i == seeds-1 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapAlloc)
		}
	}
	t.Logf("of %d bytes read %d at the most were in a cache of %d, and the heap had %d", *sizeRead, largest, *sizeCache, heap)
	if *sizeRead >= 1<<30 && largest > *sizeCache+slack { // of a small one that is no news: the collector needs its time
		t.Errorf("%d bytes are in a cache of %d", largest, *sizeCache)
	}
	packs := filepath.Join(n.config.Dir, "store", "packs")
	for began := time.Now(); sizeOf(t, packs) > *sizeCache; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%d bytes stay in a cache of %d", sizeOf(t, packs), *sizeCache)
		}
	}
	if heap > 512<<20 {
		t.Errorf("%d bytes in memory", heap)
	}
}

// sizeOf is how many bytes the files in a directory have.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else it has just gone
				n += info.Size()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
