package image

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// unfinished is the prefix of what is being unpacked, or removed.
const unfinished = ".new-"

// temps are the directories of that kind that this process has. Others are left by one that died.
type temps struct {
	mu   sync.Mutex
	live map[string]bool // by name
}

// make makes one, and returns how to remove what is there by then.
func (t *temps) make(in string) (dir string, remove func() error, err error) {
	name := unfinished + rand.Text()
	dir = filepath.Join(in, name)
	t.set(name, true) // before it can be found
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.set(name, false)
		return "", nil, err
	}
	return dir, func() error {
		defer t.set(name, false)
		return removeTree(dir)
	}, nil
}

func (t *temps) set(name string, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == nil {
		t.live = map[string]bool{}
	}
	if live {
		t.live[name] = true
	} else {
		delete(t.live, name)
	}
}

func (t *temps) isLive(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[name]
}

// clean removes what a process that died has left.
func (t *temps) clean(in string) error {
	entries, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) && !t.isLive(e.Name()) {
			err = errors.Join(err, removeTree(filepath.Join(in, e.Name())))
		}
	}
	return err
}

// removeTree removes a directory, also one that its owner may not look into.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700) // before it is read
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
