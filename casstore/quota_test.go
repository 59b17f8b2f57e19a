package casstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func setQuota(t *testing.T, s *Store, name string, q Quota) {
	t.Helper()
	if err := s.SetQuota(bg, name, q); err != nil {
		t.Fatal(err)
	}
}

func useOf(t *testing.T, s *Store, name string) QuotaUse {
	t.Helper()
	use, err := s.Quota(bg, name)
	if err != nil {
		t.Fatal(err)
	}
	return use
}

// sameWhenCounted compares what a workspace knows to use with what it uses when that is counted anew.
func sameWhenCounted(t *testing.T, w *Workspace) {
	t.Helper()
	commitTree(t, w)
	err := w.store.edit(bg, func(*revision) error {
		w.mu.Lock()
		kept := *w.quota
		w.mu.Unlock()
		q, err := w.countQuota(bg, kept.Quota)
		if err == nil && (q.bytes != kept.bytes || q.inodes != kept.inodes || q.stored != kept.stored) {
			err = fmt.Errorf("%+v is used, it thought %+v", q, kept)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestQuotaCounts runs random operations on a workspace that has a quota which is never reached.
func TestQuotaCounts(t *testing.T) {
	seed := vfstest.Seed(t)
	dir := t.TempDir()
	o := Options{Create: true, CommitEvery: time.Hour, BufferBytes: 4 << 20, cacheCost: 50}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	setQuota(t, s, "ws", Quota{Bytes: 1 << 50, Inodes: 1 << 50})
	rnd := rand.New(rand.NewPCG(seed, 1))
	vfstest.Random(t, seed, 800, w, vfstest.NewTree(), func(_ int, tree vfs.Tree) vfs.Tree {
		switch rnd.IntN(40) {
		case 0:
			sameWhenCounted(t, w)
		case 1:
			w.forgetAll()
		case 2:
			s.flusher.pressure()
		case 3:
			if rnd.IntN(4) > 0 {
				break
			}
			before := useOf(t, s, "ws")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(dir, o); err != nil {
				t.Fatal(err)
			}
			w = openWorkspace(t, s, "ws")
			// What was held is gone, and what was dirty is counted exactly.
			if after := useOf(t, s, "ws"); after.Quota != before.Quota || after.UsedInodes > before.UsedInodes ||
				after.UsedBytes > before.UsedBytes {
				t.Fatalf("%+v was used, and %+v is after it was opened", before, after)
			}
			return w
		}
		return tree
	})
	sameWhenCounted(t, w)
	checkStore(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestQuotaOfBytes(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", bulk(1))
	source := makeFile(t, w, "source", bulk(2))
	setQuota(t, s, "ws", Quota{Bytes: 1_300_000})
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, vfs.ErrQuota) {
			t.Errorf("%s: %v", what, err)
		}
	}
	allowed := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	before := viewOf(t, w)
	refused("write behind the end", w.WriteAt(bg, file, make([]byte, 150_000), 600_000, false))
	refused("write far behind it", w.WriteAt(bg, file, make([]byte, 150_000), 1<<30, false))
	refused("allocate", w.Allocate(bg, file, 0, 0, 1<<20))
	_, err := w.CopyRange(bg, source, 0, file, 600_000, 600_000)
	refused("copy", err)
	if d := vfstest.DiffTimes(before, viewOf(t, w)); d != "" {
		t.Errorf("what was refused has changed something:\n%.500s", d)
	}
	for range 5 {
		allowed("write over it", w.WriteAt(bg, file, []byte(bulk(3)), 0, false))
	}
	allowed("the rest", w.WriteAt(bg, file, make([]byte, 90_000), 600_000, false))
	_, err = w.SetAttr(bg, file, vfs.AttrSet{Mask: vfs.SetSize, Size: 1 << 40})
	refused("a hole", err)
	_, err = w.SetAttr(bg, file, vfs.AttrSet{Mask: vfs.SetSize, Size: 100})
	allowed("less", err)
	_, err = w.SetAttr(bg, file, vfs.AttrSet{Mask: vfs.SetSize, Size: 690_000})
	allowed("more, within the quota", err)
	allowed("keep the size", w.Allocate(bg, file, vfs.AllocKeepSize, 0, 1<<20))
	st, err := w.StatFS(bg)
	if err != nil || st.Blocks*uint64(st.BlockSize) > 1_300_000 || st.Available*uint64(st.BlockSize) > 20_000 {
		t.Errorf("statfs: %+v, %v", st, err)
	}
	commitTree(t, w)
	refused("write after a commit", w.WriteAt(bg, source, make([]byte, 100_000), 600_000, false))

	f := openFork(t, s, "ws", "", "fork")
	refused("write in a fork", f.WriteAt(bg, source, make([]byte, 100_000), 600_000, false))
	setQuota(t, s, "fork", Quota{})
	allowed("write in a fork without one", f.WriteAt(bg, source, make([]byte, 100_000), 600_000, false))
	refused("write beside it", w.WriteAt(bg, source, make([]byte, 100_000), 600_000, false))

	// What is open counts until it is closed.
	w.Hold(source)
	allowed("unlink", w.Unlink(bg, vfs.RootIno, "source"))
	refused("write while it is held", w.WriteAt(bg, file, make([]byte, 100_000), 690_000, false))
	w.Release(source, 1)
	allowed("write then", w.WriteAt(bg, file, make([]byte, 100_000), 690_000, false))
	sameWhenCounted(t, w)
	if use := useOf(t, s, "ws"); use.Bytes != 1_300_000 || use.UsedInodes != 2 || use.UsedBytes != 790_000 {
		t.Errorf("%+v", use)
	}
	// Less than there is: it can only shrink.
	setQuota(t, s, "ws", Quota{Bytes: 1000, Inodes: 1})
	allowed("write over it", w.WriteAt(bg, file, []byte(bulk(5)), 0, false))
	refused("write more", w.WriteAt(bg, file, []byte("x"), 790_000, false))
	allowed("unlink", w.Unlink(bg, vfs.RootIno, "file"))
}

func TestQuotaOfInodes(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	for i := range 4 {
		makeFile(t, w, fmt.Sprint(i), "x")
	}
	setQuota(t, s, "ws", Quota{Inodes: 7})
	makeFile(t, w, "fifth", "x")
	if _, err := w.Symlink(bg, vfs.RootIno, "link", "fifth", vfs.NewNode{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := w.Mkdir(bg, vfs.RootIno, "dir", vfs.NewNode{Mode: 0o755})
		if !errors.Is(err, vfs.ErrQuota) {
			t.Errorf("mkdir: %v", err)
		}
		a, err := w.Lookup(bg, vfs.RootIno, "fifth")
		if err == nil {
			_, err = w.Link(bg, a.Ino, vfs.RootIno, "second name")
		}
		if err == nil {
			err = w.Unlink(bg, vfs.RootIno, "second name")
		}
		if err != nil {
			t.Errorf("link: %v", err)
		}
		if st, err := w.StatFS(bg); err != nil || st.Files != 7 || st.FilesFree != 0 {
			t.Errorf("statfs: %+v, %v", st, err)
		}
		// It is kept when the store is opened again.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		w = openWorkspace(t, s, "ws")
	}
	if err := w.Unlink(bg, vfs.RootIno, "0"); err != nil {
		t.Fatal(err)
	}
	makeFile(t, w, "another", "x")
	if err := errors.Join(w.Close(), s.RemoveWorkspace(bg, "ws"), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestQuotaFits has many write at once: what was admitted is within the quota also when all of it is in the store.
func TestQuotaFits(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: 5 * time.Millisecond, BufferBytes: 1 << 20})
	w := openWorkspace(t, s, "ws")
	const limit = 3 << 20
	setQuota(t, s, "ws", Quota{Bytes: limit})
	var group errgroup.Group
	var refusals atomic.Int64
	for i := range 6 {
		ino := makeFile(t, w, fmt.Sprint(i), "")
		group.Go(func() error {
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			for range 40 {
				at, data := rnd.Uint64N(2<<20), bulk(byte(i))[:1+rnd.IntN(50_000)]
				switch err := w.WriteAt(bg, ino, []byte(data), at, false); {
				case errors.Is(err, vfs.ErrQuota):
					refusals.Add(1)
				case err != nil:
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	sameWhenCounted(t, w)
	if use := useOf(t, s, "ws"); use.UsedBytes > limit || refusals.Load() == 0 {
		t.Errorf("%d bytes are used of %d, after %d refusals", use.UsedBytes, limit, refusals.Load())
	}
}

func TestQuotaOfPush(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{DefaultHistory: time.Hour})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", strings.Repeat("x", 4000))
	peer := vfs.PeerID{1}
	numbers, err := w.Authority().LeaseInos(bg, peer, 10)
	if err != nil {
		t.Fatal(err)
	}
	setQuota(t, s, "ws", Quota{Bytes: 4009, Inodes: 2})
	rec := vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: 10, Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte("0123456789")}}
	name := vfs.DirentRecord{Ino: numbers.First, Type: vfs.TypeRegular}
	push := vfs.Push{ID: vfs.PushID{1}, Records: []vfs.PushRecord{
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: numbers.First}, Value: rec.Append(nil)}},
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "pushed"}, Value: name.Append(nil)}},
	}}
	if _, err := w.Authority().Push(bg, peer, push); !errors.Is(err, vfs.ErrQuota) {
		t.Errorf("push of an inode too many: %v", err)
	}
	setQuota(t, s, "ws", Quota{Bytes: 4009, Inodes: 3})
	if _, err := w.Authority().Push(bg, peer, push); !errors.Is(err, vfs.ErrQuota) {
		t.Errorf("push of bytes too many: %v", err)
	}
	setQuota(t, s, "ws", Quota{Bytes: 4010, Inodes: 3})
	if o, err := w.Authority().Push(bg, peer, push); err != nil || len(o.Stale)+len(o.Missing) > 0 {
		t.Errorf("push: %+v, %v", o, err)
	}
	sameWhenCounted(t, w)
}

// TestQuotaOfPushThatReplaces pushes a file in the place of another, which counts as long as somebody has it open.
func TestQuotaOfPushThatReplaces(t *testing.T) {
	w, d, ino := pushed(t, Options{DefaultHistory: time.Hour}) // "old text"
	s := w.store
	setQuota(t, s, "ws", Quota{Bytes: 8, Inodes: 3})
	eight := vfs.InodeRecord{
		Type: vfs.TypeRegular, Mode: 0o644, Size: 8, Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte("new text")},
	}
	w.Hold(ino)
	d.remove(d.find("file"))
	d.make(vfs.RootIno, "new", eight)
	push := d.changes()
	if _, err := d.a.Push(bg, d.peer, push); !errors.Is(err, vfs.ErrQuota) {
		t.Errorf("in the place of what is open: %v", err)
	}
	w.Release(ino, 1)
	if o, err := d.a.Push(bg, d.peer, push); err != nil || !o.Applied() {
		t.Errorf("in the place of what was: %+v, %v", o, err)
	}
	sameWhenCounted(t, w)
}

// TestLargestQuota sets the largest there is, and refuses a larger one.
func TestLargestQuota(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	for _, q := range []Quota{{Bytes: maxQuota + 1}, {Inodes: 1 << 63}} {
		if err := s.SetQuota(bg, "ws", q); !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	setQuota(t, s, "ws", Quota{Bytes: maxQuota, Inodes: maxQuota})
	makeFile(t, w, "file", "x")
	sameWhenCounted(t, w)
}

// TestQuotaAskedWhileSet asks for the use of a workspace that has no quota, and gets the answer when it has been given one:
// that stays.
func TestQuotaAskedWhileSet(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", "x")
	waiting := func(n int) {
		for {
			s.committer.mu.Lock()
			queued := len(s.committer.queue)
			s.committer.mu.Unlock()
			if queued >= n {
				return
			}
			runtime.Gosched()
		}
	}
	began, goOn := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		return s.edit(bg, func(*revision) error {
			close(began)
			<-goOn
			return nil
		})
	})
	<-began
	group.Go(func() error { return s.SetQuota(bg, "ws", Quota{Bytes: 1000}) })
	waiting(1)
	var use QuotaUse
	group.Go(func() (err error) {
		use, err = s.Quota(bg, "ws")
		return err
	})
	waiting(2)
	close(goOn)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if use.Bytes != 1000 || use.UsedBytes != 1 {
		t.Errorf("%+v", use)
	}
	if err := w.WriteAt(bg, file, make([]byte, 2000), 0, false); !errors.Is(err, vfs.ErrQuota) {
		t.Errorf("write more than the quota that was set: %v", err)
	}
}

// TestQuotaIsNotCounted opens workspaces with quotas: what they use is what the store says, which the check holds against what
// there is.
func TestQuotaIsNotCounted(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", strings.Repeat("x", 1000))
	setQuota(t, s, "ws", Quota{Bytes: 1 << 20})
	makeFile(t, w, "more", strings.Repeat("x", 100))
	takeSnapshot(t, s, "ws", "then")
	makeFile(t, w, "last", strings.Repeat("x", 10))
	for _, when := range []string{"", "then"} {
		if _, err := s.Fork(bg, "ws", when, "fork"+when); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Unlink(bg, vfs.RootIno, "file"), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{CommitEvery: time.Hour})
	check := func(name string, bytes, inodes uint64) {
		t.Helper()
		if use := useOf(t, s, name); use.Bytes != 1<<20 || use.UsedBytes != bytes || use.UsedInodes != inodes {
			t.Errorf("%s: %+v, want %d bytes and %d inodes", name, use, bytes, inodes)
		}
	}
	check("ws", 110, 3)
	check("fork", 1110, 4)
	check("forkthen", 1100, 3)
	f := openWorkspace(t, s, "fork")
	if err := f.Unlink(bg, vfs.RootIno, "more"); err != nil {
		t.Fatal(err)
	}
	check("fork", 1010, 3)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(used quotaSums) {
		t.Helper()
		err := s.edit(bg, func(v *revision) error {
			v.writeQuota(f.id, quotaRecord{Quota: Quota{Bytes: 1 << 20}, used: used, known: true})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write(quotaSums{5, 7})
	check("fork", 5, 7)
	if report, err := s.Check(bg, CheckOptions{}); err != nil || len(report.Problems) != 1 {
		t.Errorf("check: %+v, %v", report.Problems, err)
	}
	write(quotaSums{1010, 3})
}

// TestQuotaThatFails sets quotas when there is no room for the commit: what was there holds.
func TestQuotaThatFails(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	file := makeFile(t, w, "file", "x")
	commitTree(t, w)
	reserve := s.space.reserve
	refused := func(q Quota) {
		t.Helper()
		s.space.reserve = 1 << 60
		if err := s.SetQuota(bg, "ws", q); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("set: %v", err)
		}
		s.space.reserve = reserve
	}
	refused(Quota{Bytes: 10})
	if err := w.WriteAt(bg, file, make([]byte, 100), 0, false); err != nil {
		t.Errorf("a quota that was refused: %v", err)
	}
	setQuota(t, s, "ws", Quota{Bytes: 200})
	for _, q := range []Quota{{Bytes: 10}, {}, {Bytes: 1000}} {
		refused(q)
		if err := w.WriteAt(bg, file, make([]byte, 150), 0, false); err != nil {
			t.Errorf("%+v was refused: write within what there was: %v", q, err)
		}
		if err := w.WriteAt(bg, file, make([]byte, 300), 0, false); !errors.Is(err, vfs.ErrQuota) {
			t.Errorf("%+v was refused: write beyond what there was: %v", q, err)
		}
	}
	sameWhenCounted(t, w)
}
