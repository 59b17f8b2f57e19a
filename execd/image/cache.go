package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Cache is a directory of images that were unpacked. Its methods are safe for concurrent use.
type Cache struct {
	dir    string
	bounds bounds

	mu sync.Mutex // held while one is unpacked: another exec of the same image waits for it
}

// Image is one that was unpacked. It stays where it is.
type Image struct {
	Root string   // the root filesystem
	Env  []string // NAME=value, for what runs in it
}

// unfinished is the prefix of what is being unpacked.
const unfinished = ".new-"

// NewCache returns a cache in a directory, which is made when an image is.
func NewCache(dir string) *Cache { return &Cache{dir: dir, bounds: bounds{maxEntries, maxBytes}} }

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

// Unpack returns the image at a path, which is unpacked unless it has been.
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
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := filepath.Join(c.dir, strings.ReplaceAll(m.digest, ":", "-"))
	im := Image{Root: filepath.Join(dir, "root"), Env: m.config.Config.Env}
	if _, err := os.Stat(dir); err == nil {
		return im, nil
	}
	return im, c.fill(ctx, from, m, dir)
}

// fill unpacks beside the place, and gives the whole its name.
func (c *Cache) fill(ctx context.Context, from source, m *manifest, dir string) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil { // files of any owner and mode are in it
		return err
	}
	if err := c.clean(); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(c.dir, unfinished)
	if err != nil {
		return err
	}
	err = unpackAll(ctx, from, m, filepath.Join(fresh, "root"), c.bounds)
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return nil
}

// clean removes what a process that died has left.
func (c *Cache) clean() error {
	left, err := filepath.Glob(filepath.Join(c.dir, unfinished+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// decode reads a document of an image.
func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	return nil
}
