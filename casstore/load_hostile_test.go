package casstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// hostileStream is a backup that begins as one of a whole workspace does, and goes on with frames of one kind; nothing
// behind them.
func hostileStream(t *testing.T, kind byte, bodies ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	out, err := newStreamWriter(&b, firstBackup)
	frame := func(kind byte, body []byte) {
		if err == nil {
			err = out.frame(kind, body)
		}
	}
	ws := workspaceRecord{created: 1, name: "ws"}
	frame(frameBegin, append(uvarint(1), 2))
	frame(frameWorkspace, ws.encode())
	frame(frameState, (&stateBase{kind: baseNone}).encode())
	for _, body := range bodies {
		frame(kind, body)
	}
	if err == nil {
		err = out.w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLoadOfHighNumbers loads inodes of high numbers from backups that are refused, for these or for their digest: the store
// goes on giving the numbers that it would have given.
func TestLoadOfHighNumbers(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	next := s.peekIno()
	for _, ino := range []vfs.Ino{1<<64 - 1, maxIno + 1, maxIno, next + 1000} {
		rec := vfs.InodeRecord{Type: vfs.TypeRegular, Nlink: 1}
		r := vfs.Record{Key: inodeKey(ino), Value: rec.Append(nil)}
		stream := hostileStream(t, frameRecords, appendRecord(nil, &r))
		stream = append(append(stream, frameDigest, 32), make([]byte, 32)...)
		if _, err := s.Load(bg, LoadOptions{}, bytes.NewReader(stream)); !errors.Is(err, vfs.ErrCorrupt) {
			t.Errorf("inode %d: %v", ino, err)
		}
		if got := s.peekIno(); got != next {
			t.Errorf("after inode %d the next one is %d, it was %d", ino, got, next)
		}
	}
	makeFile(t, openWorkspace(t, s, "mine"), "file", "x")
}

// TestLoadOfEmptyChunks loads chunks of no bytes: they are looked at before many have been gathered.
func TestLoadOfEmptyChunks(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	body := chunkHead(&vfs.Chunk{ID: chunk.ID{1}, PlainLen: 1})
	bodies := make([][]byte, 16*vfs.MaxChunkIDs)
	for i := range bodies {
		bodies[i] = body
	}
	rest := bytes.NewReader(hostileStream(t, frameChunk, bodies...))
	if _, err := s.Load(bg, LoadOptions{}, rest); !errors.Is(err, vfs.ErrCorrupt) || rest.Len() == 0 {
		t.Errorf("load: %v, with %d bytes left to be read", err, rest.Len())
	}
}
