package casstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// verifyTables checks the indexes of Badger's tables before Badger opens them. It would end the process over some
// damage, and leave out a table whose index has a wrong checksum, with no more than a line in the log. The blocks of a
// table have checksums too, which Badger verifies as it reads them.
//
// A table that the manifest does not name yet is what a crash has left of writing it: Badger removes it.
func verifyTables(dir string) error {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil // Badger begins with the manifest
	}
	if err != nil {
		return err
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir))
	if err != nil {
		return fmt.Errorf("%s: %w: %w", f.Name(), vfs.ErrCorrupt, err)
	}
	for id := range m.Tables {
		path := table.NewFilename(id, dir)
		if err := verifyTable(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// verifyTable reads a table from its end: index, its length, the index's checksum, its length.
func verifyTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tail := tableTail{file: f, end: info.Size()}
	var sum pb.Checksum
	if b := tail.cut(tail.cutLen()); tail.err == nil {
		tail.err = proto.Unmarshal(b, &sum)
	}
	index := tail.cut(tail.cutLen())
	if tail.err == nil {
		tail.err = y.VerifyChecksum(index, &sum)
	}
	if tail.err != nil {
		return fmt.Errorf("a damaged table: %w: %w", vfs.ErrCorrupt, tail.err)
	}
	return nil
}

// tableTail cuts pieces off the end of a file. After an error it returns nothing.
type tableTail struct {
	file io.ReaderAt
	end  int64
	err  error
}

func (t *tableTail) cut(n int64) []byte {
	if t.err == nil && n > t.end {
		t.err = io.ErrUnexpectedEOF
	}
	if t.err != nil {
		return nil
	}
	b := make([]byte, n)
	t.end -= n
	_, t.err = t.file.ReadAt(b, t.end)
	return b
}

func (t *tableTail) cutLen() int64 {
	b := t.cut(4)
	if t.err != nil {
		return 0
	}
	return int64(binary.BigEndian.Uint32(b))
}
