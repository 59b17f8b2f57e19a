package casstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// witness is the file HEAD: the newest revision, 8 bytes, written after each commit and not synced. It is never ahead of
// what is durable, so a store whose head is behind it has lost revisions: Badger takes the first damaged byte of a log
// for its end, and would cut off, without a word, everything that was committed behind it.
//
// Since Badger does so as it opens, its logs are copied before that, and put back when the head turns out to be too low.
// After a clean Close there are no logs.
type witness struct {
	dir  string
	file *os.File
}

const (
	witnessFile = "HEAD"
	logPattern  = "*.mem"
	copyDir     = "badger-logs" // copies of Badger's logs, while it is being opened
)

func openWitness(dir string) (*witness, error) {
	f, err := os.OpenFile(filepath.Join(dir, witnessFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &witness{dir: dir, file: f}, nil
}

// write says that a revision is durable.
func (w *witness) write(r vfs.Rev) error {
	_, err := w.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(r)), 0)
	return err
}

// check compares the head of a store that has just been opened. A witness that is not there or not whole says nothing.
func (w *witness) check(head vfs.Rev) error {
	var b [8]byte
	if _, err := w.file.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if seen := vfs.Rev(binary.BigEndian.Uint64(b[:])); head < seen {
		return fmt.Errorf("badger's log ends at revision %d, but revision %d was committed: a log in %s is damaged: %w",
			head, seen, filepath.Join(w.dir, badgerDir), vfs.ErrCorrupt)
	}
	return nil
}

func (w *witness) close() error { return w.file.Close() }

// saveLogs copies Badger's logs. Copies that are there already are older: an opening was cut short, and Badger may have
// cut the logs themselves since.
func (w *witness) saveLogs() error {
	to := filepath.Join(w.dir, copyDir)
	if _, err := os.Stat(to); err == nil {
		return w.restoreLogs()
	}
	logs, err := filepath.Glob(filepath.Join(w.dir, badgerDir, logPattern))
	if err != nil || len(logs) == 0 {
		return err
	}
	making := to + ".new"
	if err := errors.Join(os.RemoveAll(making), os.Mkdir(making, 0o700)); err != nil {
		return err
	}
	for _, path := range logs {
		if err := copySparse(filepath.Join(making, filepath.Base(path)), path); err != nil {
			return fmt.Errorf("copy badger's logs: %w", err)
		}
	}
	return os.Rename(making, to)
}

// restoreLogs puts the copies in the place of what Badger has made of the logs.
func (w *witness) restoreLogs() error {
	logs, err := filepath.Glob(filepath.Join(w.dir, copyDir, logPattern))
	if err != nil {
		return err
	}
	for _, path := range logs {
		if err := copySparse(filepath.Join(w.dir, badgerDir, filepath.Base(path)), path); err != nil {
			return fmt.Errorf("restore badger's logs: %w", err)
		}
	}
	return nil
}

func (w *witness) forgetLogs() error { return os.RemoveAll(filepath.Join(w.dir, copyDir)) }

// copySparse copies a file and keeps its holes: a log is mostly one.
func copySparse(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	for at := int64(0); ; {
		data, err := src.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return err
		}
		hole, err := src.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(dst, data), io.NewSectionReader(src, data, hole-data)); err != nil {
			return err
		}
		at = hole
	}
	return errors.Join(dst.Truncate(info.Size()), dst.Sync())
}
