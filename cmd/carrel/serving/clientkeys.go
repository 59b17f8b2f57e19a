package serving

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"github.com/carrelfs/carrel/syncwire"
)

// clientKeys are the keys of the clients that are let in, in a file as syncwire.ParseClientKeys reads it. The file is looked at
// for each stream, and whenever the workspaces are, so that who is taken out of it is shut out, sessions that run too.
type clientKeys struct {
	path string
	log  *slog.Logger

	mu    sync.Mutex
	seen  os.FileInfo
	known map[syncwire.Fingerprint]string
	fresh bool // known was read since changed was asked
}

// openClientKeys fails when the file cannot be read now. Later it lets nobody in then, and the log says why.
func openClientKeys(path string, log *slog.Logger) (*clientKeys, error) {
	k := &clientKeys{path: path, log: log}
	return k, k.refreshLocked() // nobody else has it yet
}

// knows reports whether a key is in the file.
func (k *clientKeys) knows(f syncwire.Fingerprint) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refreshLocked(); err != nil {
		k.log.Error("the file of client keys cannot be read: nobody is let in", "err", err)
		return false
	}
	_, ok := k.known[f]
	return ok
}

// changed reports whether the file has come to say something else since it was asked last. One that cannot be read says
// nothing: then nobody is let in, and who is there stays.
func (k *clientKeys) changed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refreshLocked() != nil || !k.fresh {
		return false
	}
	k.fresh = false
	return true
}

// refreshLocked reads the file when it is another than was read before.
func (k *clientKeys) refreshLocked() error {
	f, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("client keys: %w", err)
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("client keys: %w", err)
	}
	if k.seen != nil && isSameFile(info, k.seen) {
		return nil
	}
	known, err := syncwire.ParseClientKeys(f)
	if err != nil {
		return fmt.Errorf("client keys: %s: %w", k.path, err)
	}
	k.seen, k.known, k.fresh = info, known, true
	return nil
}

// isSameFile reports whether a file is as it was: neither replaced nor written to since.
func isSameFile(a, b os.FileInfo) bool {
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return os.SameFile(a, b) && x.Size == y.Size && x.Mtim == y.Mtim && x.Ctim == y.Ctim
}
