package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Config is what a cache needs.
type Config struct {
	Dir       string        // is made when an image is
	KeepFor   time.Duration // KeepFor when zero
	KeepBytes int64         // KeepBytes when zero
	Log       *slog.Logger
}

// Cache is a directory of images that were unpacked. Its methods are safe for concurrent use.
type Cache struct {
	config Config
	bounds bounds
	slots  slots
	temps  temps

	owned sync.WaitGroup // keep
	wake  chan struct{}  // something is to be swept
	stop  chan struct{}  // closed by Close
	end   sync.Once      // closes stop
}

// Image is one that was unpacked. It stays where it is until Release.
type Image struct {
	Root string   // the root filesystem
	Env  []string // NAME=value, for what runs in it

	release func()
}

// Release says that the image is not used any more. It may be called often.
func (i Image) Release() { i.release() }

// Open returns a cache. It must be closed.
func Open(config Config) *Cache {
	config.KeepFor = cmp.Or(config.KeepFor, KeepFor)
	config.KeepBytes = cmp.Or(config.KeepBytes, KeepBytes)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{config: config, bounds: usualBounds, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.owned.Go(c.keep)
	return c
}

// Close returns when nothing of the cache does anything any more. What was unpacked stays. It may be called often.
func (c *Cache) Close() error {
	c.end.Do(func() { close(c.stop) })
	c.owned.Wait()
	return nil
}

// Is reports whether there is an image, or what may be one, at a path: a file, or a directory that says that it is a layout.
func Is(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() {
		info, err = os.Stat(filepath.Join(path, layoutFile))
	}
	return err == nil && info.Mode().IsRegular()
}

// Unpack returns the image at a path, which is unpacked unless it has been. It is the caller's to release.
func (c *Cache) Unpack(ctx context.Context, path string) (Image, error) {
	im, err := c.unpack(ctx, path)
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", path, err)
	}
	return im, nil
}

func (c *Cache) unpack(ctx context.Context, path string) (Image, error) {
	from, err := open(path)
	if err != nil {
		return Image{}, err
	}
	im, err := c.from(ctx, from)
	return im, errors.Join(err, from.Close())
}

func (c *Cache) from(ctx context.Context, from source) (Image, error) {
	m, err := readManifest(from)
	if err != nil {
		return Image{}, err
	}
	name := strings.ReplaceAll(m.digest, ":", "-")
	mine, err := c.slots.enter(ctx, name)
	if err != nil {
		return Image{}, err
	}
	if mine {
		err := c.provide(ctx, from, m, name)
		c.slots.settle(name, err == nil)
		if err != nil {
			return Image{}, err
		}
	}
	c.touch(name)
	return Image{Root: c.root(name), Env: m.config.Config.Env, release: c.releaseOf(name)}, nil
}

func (c *Cache) dir(name string) string  { return filepath.Join(c.config.Dir, name) }
func (c *Cache) root(name string) string { return filepath.Join(c.dir(name), "root") }

// releaseOf ends a use, which counts as one to its end.
func (c *Cache) releaseOf(name string) func() {
	return sync.OnceFunc(func() {
		c.touch(name)
		c.slots.leave(name)
	})
}

// touch notes that an image is used. Where that is not possible it is removed earlier, no more.
func (c *Cache) touch(name string) {
	now := time.Now()
	_ = os.Chtimes(c.dir(name), now, now)
}

// Hold keeps one image more for the root of one that somebody has, until release. It reports false when that is not there,
// and does nothing for a root that is not of this cache.
func (c *Cache) Hold(root string) (release func(), ok bool) {
	name := filepath.Base(filepath.Dir(root))
	if root != c.root(name) {
		return func() {}, true
	}
	if !c.slots.hold(name) {
		return nil, false
	}
	return c.releaseOf(name), true
}

// provide has an image there. When the disk has no space for it, it is tried once more without those that nobody uses.
func (c *Cache) provide(ctx context.Context, from source, m *manifest, name string) error {
	if _, err := readRecord(c.dir(name)); err == nil {
		return nil
	}
	err := c.fill(ctx, from, m, name)
	if !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	removed, sweepErr := c.sweep(time.Now(), 0)
	if sweepErr != nil || removed == 0 {
		return errors.Join(err, sweepErr)
	}
	return c.fill(ctx, from, m, name)
}

// fill unpacks beside the place, and gives the whole its name once it is on the disk.
func (c *Cache) fill(ctx context.Context, from source, m *manifest, name string) error {
	if err := os.MkdirAll(c.config.Dir, 0o700); err != nil { // files of any owner and mode are in it
		return err
	}
	fresh, remove, err := c.temps.make(c.config.Dir)
	if err != nil {
		return err
	}
	err = c.fillIn(ctx, from, m, fresh)
	if err == nil {
		err = errors.Join(c.discard(name), os.Rename(fresh, c.dir(name)), syncDir(c.config.Dir))
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w: %w", vfs.ErrNoSpace, err)
	}
	if err == nil {
		c.sweepSoon()
	}
	return errors.Join(err, remove())
}

func (c *Cache) fillIn(ctx context.Context, from source, m *manifest, dir string) error {
	b, err := c.bounds.on(dir)
	if err != nil {
		return err
	}
	before := b.bytes
	if err := unpackAll(ctx, from, m, filepath.Join(dir, "root"), &b); err != nil {
		return err
	}
	if err := writeRecord(dir, record{Bytes: before - b.bytes}); err != nil {
		return err
	}
	return syncFilesystem(dir) // one call for all files: to sync each takes a hundred times as long
}

// discard takes away what has the name of an image and is none, or none any more.
func (c *Cache) discard(name string) error {
	if _, err := os.Lstat(c.dir(name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	old, remove, err := c.temps.make(c.config.Dir)
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(c.dir(name), filepath.Join(old, name)), remove())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncFilesystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// decode reads a document of an image.
func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	return nil
}
