package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func (c *Cache) must(t *testing.T, path string) Image {
	t.Helper()
	im, err := c.Unpack(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// ofOneFile is an image that differs from those of other names.
func ofOneFile(t *testing.T, name string) string {
	t.Helper()
	return newLayout(t, entries(t, file(name))).write(t)
}

// age makes an image look as if it was used so long ago.
func (c *Cache) age(t *testing.T, im Image, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Dir(im.Root), then, then); err != nil {
		t.Fatal(err)
	}
}

func exists(im Image) bool {
	_, err := os.Lstat(im.Root)
	return err == nil
}

// What nobody uses goes when it is old, or when all is too much, that first which was used first; what is used stays.
func TestSweep(t *testing.T) {
	c := newCache(t)
	var images []Image
	for i, name := range []string{"a", "b", "c", "d"} {
		im := c.must(t, ofOneFile(t, name))
		if im.Release(); i == 3 {
			im = c.must(t, ofOneFile(t, name))
		}
		c.age(t, im, time.Duration(10-i)*time.Hour)
		images = append(images, im)
	}
	check := func(what string, keepBytes int64, want ...bool) {
		t.Helper()
		if _, err := c.sweep(time.Now(), keepBytes); err != nil {
			t.Error(err)
		}
		for i, im := range images {
			if exists(im) != want[i] {
				t.Errorf("%s: image %d is there: %v", what, i, exists(im))
			}
		}
	}
	check("little", 100, true, true, true, true)
	check("too much", 3, false, true, true, true) // each has a file of one byte
	c.age(t, images[1], c.config.KeepFor+time.Hour)
	c.age(t, images[3], c.config.KeepFor+time.Hour)
	check("old", 100, false, false, true, true)
	check("nothing is kept", 0, false, false, false, true)
	images[3].Release()
	images[3].Release()
	c.age(t, images[3], c.config.KeepFor+time.Hour)
	check("not used any more", 100, false, false, false, false)
	if left := c.left(t); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	again := c.must(t, ofOneFile(t, "a"))
	defer again.Release()
	if !exists(again) {
		t.Error("an image that was removed is not unpacked again")
	}
}

// An image is held as often as anybody wants it, by whoever knows its root, as long as it is there.
func TestHold(t *testing.T) {
	c := newCache(t)
	im := c.must(t, ofOneFile(t, "a"))
	release, ok := c.Hold(im.Root)
	if !ok {
		t.Fatal("what is used cannot be held")
	}
	im.Release()
	if n, err := c.sweep(time.Now(), 0); n != 0 || err != nil || !exists(im) {
		t.Errorf("what is held was removed: %d, %v", n, err)
	}
	release()
	if n, err := c.sweep(time.Now(), 0); n != 1 || err != nil || exists(im) {
		t.Errorf("what is not held stays: %d, %v", n, err)
	}
	if _, ok := c.Hold(im.Root); ok {
		t.Error("what was removed can be held")
	}
	elsewhere, ok := c.Hold(t.TempDir())
	if !ok {
		t.Fatal("a directory that is no image cannot be held")
	}
	elsewhere()
}

// What a process that was killed has left is taken away, and an image that is not whole is unpacked again.
func TestCrash(t *testing.T) {
	path := ofOneFile(t, "a")
	dir := filepath.Join(t.TempDir(), "images")
	c := Open(Config{Dir: dir})
	im := c.must(t, path)
	im.Release()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(filepath.Dir(im.Root))
	for what, harm := range map[string]func() error{
		"while it was unpacked":      func() error { return os.Rename(filepath.Dir(im.Root), filepath.Join(dir, unfinished+"1")) },
		"while it was removed":       func() error { return os.MkdirAll(filepath.Join(dir, unfinished+"2", name, "root"), 0o700) },
		"by one that wrote no notes": func() error { return os.Remove(filepath.Join(dir, name, recordFile)) },
		"with the disk":              func() error { return os.WriteFile(filepath.Join(dir, name, recordFile), nil, 0o600) },
		"files are gone": func() error {
			return errors.Join(os.Remove(filepath.Join(im.Root, "a")), os.Remove(filepath.Join(dir, name, recordFile)))
		},
	} {
		if err := harm(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		c := Open(Config{Dir: dir})
		got := c.must(t, path)
		if !equal(list(t, got.Root), map[string]string{"a": "a"}) {
			t.Errorf("%s: %v", what, list(t, got.Root))
		}
		if _, err := c.sweep(time.Now(), KeepBytes); err != nil {
			t.Error(err)
		}
		if left := c.left(t); !slices.Equal(left, []string{name}) {
			t.Errorf("%s: %v is left", what, left)
		}
		got.Release()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// slow is a source whose layers come when they may.
type slow struct {
	source
	asked, may chan struct{}
	once       *sync.Once
}

func (s slow) Open(name string) (io.ReadCloser, error) {
	f, err := s.source.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(b), "slow\x00") { // the layer
		s.once.Do(func() { close(s.asked) })
		<-s.may
	}
	return io.NopCloser(strings.NewReader(string(b))), nil
}

// Who wants an image that is being unpacked waits for it, as long as they want; who wants another does not. When whoever
// unpacks it gives up, the next does.
func TestConcurrentUnpack(t *testing.T) {
	c := newCache(t)
	path := ofOneFile(t, "slow")
	unpack := func(ctx context.Context, s slow) <-chan error {
		done := make(chan error, 1)
		go func() {
			im, err := c.from(ctx, s)
			if err == nil {
				im.Release()
			}
			done <- err
		}()
		return done
	}
	newSlow := func() slow {
		from, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := from.Close(); err != nil {
				t.Error(err)
			}
		})
		return slow{from, make(chan struct{}), make(chan struct{}), &sync.Once{}}
	}
	first, second := newSlow(), newSlow()
	ctx, giveUp := context.WithCancel(t.Context())
	one := unpack(ctx, first)
	<-first.asked
	c.must(t, ofOneFile(t, "other")).Release()
	if n, err := c.sweep(time.Now(), 0); n != 1 || err != nil {
		t.Errorf("%d images were removed, %v", n, err)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Unpack(short, path); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("who does not wait: %v", err)
	}
	two := unpack(t.Context(), second)
	giveUp()
	close(first.may)
	if err := <-one; !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("who has given up: %v", err)
	}
	<-second.asked
	close(second.may)
	if err := <-two; err != nil {
		t.Errorf("the next: %v", err)
	}
	many := newSlow()
	close(many.may)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := <-unpack(t.Context(), many); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := c.left(t); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

// An image that finds no space takes that of others that nobody uses, and has none of what is left of the disk otherwise.
func TestNoSpace(t *testing.T) {
	c := newCache(t)
	old := c.must(t, ofOneFile(t, "a"))
	old.Release()
	c.bounds.bytes, c.bounds.full = 3, vfs.ErrNoSpace
	if _, err := c.Unpack(t.Context(), ofOneFile(t, "long")); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("%v", err)
	}
	if exists(old) || len(c.left(t)) != 0 {
		t.Errorf("%v is left", c.left(t))
	}
	b, err := usualBounds.on(t.TempDir())
	if err != nil || b.bytes > maxBytes {
		t.Errorf("%+v, %v", b, err)
	}
}

// An ordinary user unpacks directories that keep out their owner, puts files of later layers into them, and removes them.
func TestUnpackAsUser(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	closed := withMode(dir("closed"), 0o500)
	c := newCache(t)
	im := c.must(t, newLayout(t, entries(t, closed, file("closed/a"), withMode(dir("none"), 0o050), withMode(dir("none/in"), 0o555)),
		entries(t, file("closed/b"), file("none/in/c"), file("closed/.wh.a"))).write(t))
	for name, want := range map[string]os.FileMode{"closed": 0o500, "none": 0o050} {
		info, err := os.Lstat(filepath.Join(im.Root, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := os.Chmod(filepath.Join(im.Root, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"closed": "/", "closed/b": "closed/b", "none": "/", "none/in": "/", "none/in/c": "none/in/c"}
	if got := list(t, im.Root); !equal(got, want) {
		t.Errorf("%q", got)
	}
	im.Release()
	if n, err := c.sweep(time.Now(), 0); n != 1 || err != nil || len(c.left(t)) != 0 {
		t.Errorf("%d images were removed, %v, %v is left", n, err, c.left(t))
	}
}

func withMode(h tar.Header, mode int64) tar.Header {
	h.Mode = mode
	return h
}

// asNobody runs the test again as one.
func asNobody(t *testing.T) {
	const nobody = 65534
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

// A daemon closes what it has on every way out.
func TestCloseTwice(t *testing.T) {
	c := Open(Config{Dir: t.TempDir()})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
