package image

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// recordFile says of a directory that all of its image is there.
const recordFile = "image.json"

// record is what is kept of an image beside its root.
type record struct {
	Bytes int64 `json:"bytes"` // of its files, in all layers together
}

func readRecord(dir string) (record, error) {
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return record{}, err
	}
	var r record
	return r, decode(b, &r)
}

func writeRecord(dir string, r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), b, 0o600) // whose directory has no name yet
}

// keep removes what is not to be kept, from time to time.
func (c *Cache) keep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if _, err := c.sweep(time.Now(), c.config.KeepBytes); err != nil {
			c.config.Log.Error("remove images that nobody uses", "dir", c.config.Dir, "err", err)
		}
		select {
		case <-tick.C:
		case <-c.wake:
		case <-c.stop:
			return
		}
	}
}

// sweepSoon has keep sweep when it can.
func (c *Cache) sweepSoon() {
	select {
	case c.wake <- struct{}{}:
	default: // it will
	}
}

// sweep removes what was left half done, and of the images that nobody uses those that were not used for KeepFor, and then
// as many as are too much. It returns how many images it has removed.
func (c *Cache) sweep(now time.Time, keepBytes int64) (removed int, err error) {
	err = c.temps.clean(c.config.Dir)
	list, listErr := c.list()
	err = errors.Join(err, listErr)
	var total int64
	for _, k := range list {
		total += k.bytes
		if now.Sub(k.used) <= c.config.KeepFor && total <= keepBytes {
			continue
		}
		if !c.slots.shut(k.name) {
			continue // it is used
		}
		evictErr := c.discard(k.name)
		c.slots.settle(k.name, false)
		if evictErr == nil {
			removed++
			total -= k.bytes
		}
		err = errors.Join(err, evictErr)
	}
	return removed, err
}

// kept is an image on the disk.
type kept struct {
	name  string
	used  time.Time
	bytes int64
}

var imageName = regexp.MustCompile(`^sha256-[0-9a-f]{64}$`)

// list returns what is there, the last used first. What is not whole was used never.
func (c *Cache) list() ([]kept, error) {
	entries, err := os.ReadDir(c.config.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var list []kept
	for _, e := range entries {
		if !imageName.MatchString(e.Name()) {
			continue
		}
		k := kept{name: e.Name()}
		if r, err := readRecord(c.dir(k.name)); err == nil {
			if info, err := e.Info(); err == nil {
				k.used, k.bytes = info.ModTime(), r.Bytes
			}
		}
		list = append(list, k)
	}
	slices.SortStableFunc(list, func(a, b kept) int { return b.used.Compare(a.used) })
	return list, err
}
