package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// What records and chunks are made of, by the first byte of the input.
const (
	inodePart = iota
	direntPart
	entriesPart
	nodePart
	rootPart
	chunkPart
	parts
)

// Memory for a record of n bytes: an error's text says bytes in hexadecimal, and entries of two bytes (a hole) are ones of 48,
// grown a quarter at a time.
const (
	recordRoom = 16 << 10
	recordPer  = 160
)

// FuzzRecord: what decodes is canonical, so that one value has one encoding and one hash, and is within its limits.
func FuzzRecord(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		part, b := b[0]%parts, b[1:]
		if part == chunkPart {
			checkChunk(t, b)
			return
		}
		var again []byte
		var err error
		bounded(t, recordRoom+recordPer*uint64(len(b)), func() { again, err = recode(part, b) })
		switch {
		case err == nil && !bytes.Equal(again, b):
			t.Fatalf("%x encodes to %x", b, again)
		case err != nil && !errors.Is(err, vfs.ErrCorrupt) && !errors.Is(err, chunk.ErrCorrupt):
			t.Fatalf("%x: %v", b, err)
		}
	})
}

// recode decodes b and encodes what it is.
func recode(part byte, b []byte) (again []byte, err error) {
	switch part {
	case inodePart:
		r, err := vfs.DecodeInode(b)
		if err != nil {
			return nil, err
		}
		if _, err := r.ChunkRefs(); err != nil {
			return nil, err
		}
		return r.Append(nil), nil
	case direntPart:
		r, err := vfs.DecodeDirent(b)
		return r.Append(nil), err
	case entriesPart:
		entries, rest, err := chunk.DecodeEntries(b, chunk.MaxInline)
		return append(chunk.AppendEntries(nil, entries), rest...), err
	case nodePart:
		n, err := chunk.DecodeNode(b)
		if err != nil {
			return nil, err
		}
		return chunk.AppendNode(nil, n), nil
	default:
		r, rest, err := chunk.DecodeRoot(b)
		return append(chunk.AppendRoot(nil, r), rest...), err
	}
}

// checkChunk: a chunk gives the plain bytes that its id names, or none. The input is codec:1 plain length:3 stored.
func checkChunk(t *testing.T, b []byte) {
	if len(b) < 4 {
		return
	}
	head := binary.BigEndian.Uint32(b)
	c := vfs.Chunk{Codec: chunk.Codec(head >> 24), PlainLen: int(head & (1<<24 - 1)), Stored: b[4:]}
	if plain, err := chunk.Decode(nil, c.Codec, c.Stored, c.PlainLen); err == nil {
		c.ID = chunk.Sum(plain)
	}
	dst := make([]byte, 0, chunk.MaxSize)
	plain, err := c.Plain(dst)
	switch {
	case err != nil && !errors.Is(err, vfs.ErrCorrupt):
		t.Fatal(err)
	case err == nil && (len(plain) != c.PlainLen || chunk.Sum(plain) != c.ID):
		t.Fatalf("%d bytes of %d, another id: %t", len(plain), c.PlainLen, chunk.Sum(plain) != c.ID)
	}
	c.ID[0]++
	if _, err := c.Plain(dst); !errors.Is(err, vfs.ErrCorrupt) {
		t.Fatalf("under another id: %v", err)
	}
}

func seedRecords(f *testing.F) {
	add := func(part byte, b []byte) { f.Add(append([]byte{part}, b...)) }
	for _, r := range []vfs.InodeRecord{
		{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: 1, Mtime: -1, Ctime: 1 << 40},
		{Type: vfs.TypeSymlink, Mode: 0o777, Nlink: 1, Size: 1, Body: vfs.Body{Kind: vfs.BodyTarget, Data: []byte("a")}},
		{Type: vfs.TypeRegular, Nlink: 1, Size: 3, Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte("abc")}},
		{Type: vfs.TypeRegular, Nlink: 1, Size: 1 << 20, Body: vfs.Body{Kind: vfs.BodyExtents,
			Data: chunk.AppendEntries(nil, []chunk.Entry{{ID: chunk.Sum(nil), Len: 1 << 19}, chunk.HoleOf(1 << 19)})}},
	} {
		add(inodePart, r.Append(nil))
	}
	add(direntPart, (&vfs.DirentRecord{Ino: 300, Type: vfs.TypeRegular}).Append(nil))
	for part, file := range map[byte]string{entriesPart: "entries", nodePart: "node", rootPart: "root"} {
		for _, b := range chunkVectors(f, file) {
			add(part, b)
		}
	}
	plain := []byte(strings.Repeat("carrel ", 1000))
	for _, encode := range []func(dst, plain []byte) (chunk.Codec, []byte){chunk.Encode, chunk.Recompress} {
		codec, stored := encode(nil, plain)
		add(chunkPart, append(binary.BigEndian.AppendUint32(nil, uint32(codec)<<24|uint32(len(plain))), stored...))
	}
	add(chunkPart, append(binary.BigEndian.AppendUint32(nil, uint32(chunk.Raw)<<24|1), 'a'))
}

// chunkVectors returns the encodings, good and bad, in a file of package chunk's vectors.
func chunkVectors(t testing.TB, file string) (all [][]byte) {
	archive, err := txtar.ParseFile("../../casstore/chunk/testdata/" + file + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		text, _, _ := strings.Cut(string(f.Data), "=") // what it decodes to
		b, err := hex.DecodeString(strings.ReplaceAll(text, "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		all = append(all, b)
	}
	return all
}
