package image

import (
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Kept is an image that is on the disk.
type Kept struct {
	Name  string    `json:"name"`  // the digest of its config
	Bytes int64     `json:"bytes"` // of its files
	Used  time.Time `json:"used"`  // when it was used last; zero for one that is damaged
	InUse bool      `json:"in_use"`
}

// Kept returns the images that there are, the last used first.
func (c *Cache) Kept() ([]Kept, error) {
	list, err := c.list()
	out := []Kept{}
	for _, k := range list {
		out = append(out, Kept{Name: k.name, Bytes: k.bytes, Used: k.used, InUse: c.slots.used(k.name)})
	}
	return out, err
}

// Remove removes an image: ErrNotExist, or ErrBusy when somebody uses it.
func (c *Cache) Remove(name string) error {
	list, err := c.list()
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.name != name {
			continue
		}
		if !c.slots.shut(name) {
			return fmt.Errorf("image %s is used: %w", name, vfs.ErrBusy)
		}
		err := c.discard(name)
		c.slots.settle(name, false)
		return err
	}
	return fmt.Errorf("image %q: %w", name, vfs.ErrNotExist)
}
