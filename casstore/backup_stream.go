package casstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/minio/sha256-simd"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// A backup is a stream of frames; FORMAT.md says which:
//
//	"carrel" 00 "b" | version uvarint
//	type:1 | length uvarint | body      … as often as there are frames
//	'Z' | 32 | SHA-256 of everything before this frame
const (
	backupMagic   = "carrel\x00b"
	firstBackup   = 1
	secondBackup  = 2 // with conflicts and merges
	backupVersion = secondBackup

	frameBegin     = 'B' // rev | time: of the store, when it was taken; uvarint, varint
	frameWorkspace = 'W' // workspaceRecord
	frameState     = 'S' // stateBase
	frameChunk     = 'C' // id:32 | codec:1 | plain length uvarint | stored bytes
	frameRecords   = 'R' // kind:1 | ino uvarint | length of name uvarint | name | 0, or 1 + length of value uvarint | value; …
	frameDigest    = 'E' // digest:32 of the state that ends here
	frameSnapshot  = 'P' // created varint | length of name uvarint | name | message: of that state
	frameConflict  = 'N' // number uvarint | note: of that workspace
	frameMerge     = 'M' // state that was merged | first state that has it of the workspace that it was merged into; uvarints
	frameEnd       = 'Z'
)

// streamWriter writes a backup.
type streamWriter struct {
	w    *bufio.Writer
	sum  hash.Hash
	n    uint64
	head []byte
}

func newStreamWriter(w io.Writer, version byte) (*streamWriter, error) {
	s := &streamWriter{w: bufio.NewWriterSize(w, 256<<10), sum: sha256.New()}
	return s, s.write(append([]byte(backupMagic), version))
}

func (s *streamWriter) write(b []byte) error {
	s.sum.Write(b) // which does not fail
	s.n += uint64(len(b))
	_, err := s.w.Write(b)
	return err
}

// frame writes a frame whose body is in parts.
func (s *streamWriter) frame(kind byte, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	s.head = binary.AppendUvarint(append(s.head[:0], kind), uint64(n))
	err := s.write(s.head)
	for _, p := range parts {
		if err == nil {
			err = s.write(p)
		}
	}
	return err
}

// close writes the last frame.
func (s *streamWriter) close() error {
	if err := s.frame(frameEnd, s.sum.Sum(nil)); err != nil {
		return err
	}
	return s.w.Flush()
}

// streamReader reads a backup. Every error of what it reads is ErrCorrupt, or ErrNewerFormat.
type streamReader struct {
	r       *bufio.Reader
	version byte
	sum     hash.Hash
	n       uint64 // bytes read
	buf     []byte
}

func newStreamReader(r io.Reader) (*streamReader, error) {
	s := &streamReader{r: bufio.NewReaderSize(r, 256<<10), sum: sha256.New()}
	magic := make([]byte, len(backupMagic)+1)
	err := s.fill(magic)
	switch got := string(magic[:min(s.n, uint64(len(backupMagic)))]); {
	case got != backupMagic[:len(got)]:
		return nil, fmt.Errorf("the stream is no backup: %w", vfs.ErrCorrupt)
	case err != nil:
		return nil, err
	case magic[len(backupMagic)] > backupVersion:
		return nil, fmt.Errorf("backup of version %d: %w", magic[len(backupMagic)], vfs.ErrNewerFormat)
	case magic[len(backupMagic)] == 0:
		return nil, s.corrupt("version 0")
	}
	s.version = magic[len(backupMagic)]
	return s, nil
}

func (s *streamReader) corrupt(format string, args ...any) error {
	return fmt.Errorf("backup at byte %d: %s: %w", s.n, fmt.Sprintf(format, args...), vfs.ErrCorrupt)
}

// fill reads all of p, and counts it in.
func (s *streamReader) fill(p []byte) error {
	n, err := io.ReadFull(s.r, p)
	s.n += uint64(n)
	s.sum.Write(p[:n])
	return s.ended(err)
}

// ended says that the stream must not end here.
func (s *streamReader) ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.corrupt("it ends too early")
	}
	return err
}

// ReadByte is for the lengths of frames.
func (s *streamReader) ReadByte() (byte, error) {
	var b [1]byte
	err := s.fill(b[:])
	return b[0], err
}

// next reads a frame, whose body is valid until the next one is read. The last one it verifies.
func (s *streamReader) next() (kind byte, body []byte, err error) {
	before := s.sum.Sum(nil)
	if kind, err = s.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := binary.ReadUvarint(s)
	switch {
	case errors.Is(err, vfs.ErrCorrupt):
		return 0, nil, err
	case err != nil:
		return 0, nil, s.corrupt("length of a frame: %v", err)
	case n > maxFrame:
		return 0, nil, s.corrupt("frame of %d bytes", n)
	}
	if cap(s.buf) < int(n) {
		s.buf = make([]byte, n)
	}
	body = s.buf[:n]
	if err := s.fill(body); err != nil {
		return 0, nil, err
	}
	if kind != frameEnd {
		return kind, body, nil
	}
	if string(body) != string(before) {
		return 0, nil, s.corrupt("it is not what was written: its digest is another")
	}
	if _, err := s.r.ReadByte(); !errors.Is(err, io.EOF) {
		return 0, nil, s.corrupt("there is something behind its end (%v)", err)
	}
	return kind, body, nil
}

// baseKind says what a state of a backup is the difference to.
type baseKind byte

const (
	baseNone  baseKind = 0 // it is whole
	baseState baseKind = 1 // state: a state before it in the stream, counted from 0
	baseThere baseKind = 2 // what whoever loads it has: a state of this digest
)

// stateBase is the body of a frame that begins a state. Layout: kind:1 | state uvarint, or digest:32.
type stateBase struct {
	kind   baseKind
	state  uint64
	digest [32]byte
}

func (b *stateBase) encode() []byte {
	out := []byte{byte(b.kind)}
	switch b.kind {
	case baseState:
		out = binary.AppendUvarint(out, b.state)
	case baseThere:
		out = append(out, b.digest[:]...)
	}
	return out
}

func decodeStateBase(b []byte) (s stateBase, err error) {
	if len(b) == 0 {
		return s, fmt.Errorf("state of a backup: %w", vfs.ErrCorrupt)
	}
	s.kind, b = baseKind(b[0]), b[1:]
	switch {
	case s.kind == baseNone && len(b) == 0:
		return s, nil
	case s.kind == baseThere && len(b) == len(s.digest):
		copy(s.digest[:], b)
		return s, nil
	case s.kind == baseState:
		v, err := uvarints(b, 1)
		if err == nil {
			s.state = v[0]
		}
		return s, err
	}
	return s, fmt.Errorf("state of a backup: %x: %w", b, vfs.ErrCorrupt)
}

// appendRecord appends a record of a backup.
func appendRecord(dst []byte, r *vfs.Record) []byte {
	dst = binary.AppendUvarint(append(dst, byte(r.Kind)), uint64(r.Ino))
	dst = binary.AppendUvarint(dst, uint64(len(r.Name)))
	dst = append(dst, r.Name...)
	if r.Value == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, 1+uint64(len(r.Value)))
	return append(dst, r.Value...)
}

// cutRecord takes a record off the front. Its value is a copy.
func cutRecord(b []byte) (r vfs.Record, rest []byte, err error) {
	if len(b) == 0 {
		return r, nil, vfs.ErrCorrupt
	}
	r.Kind = vfs.KeyKind(b[0])
	ino, b, err := cutUvarint(b[1:])
	if err != nil {
		return r, nil, err
	}
	r.Ino = vfs.Ino(ino)
	name, b, err := cutBytes(b)
	if err != nil {
		return r, nil, err
	}
	r.Name = string(name)
	n, rest, err := cutUvarint(b)
	if err != nil || n == 0 {
		return r, rest, err
	}
	if n--; n > uint64(len(rest)) {
		return r, nil, vfs.ErrCorrupt
	}
	r.Value = append([]byte{}, rest[:n]...)
	return r, rest[n:], nil
}

// cutBytes takes a length and as many bytes off the front.
func cutBytes(b []byte) (out, rest []byte, err error) {
	n, rest, err := cutUvarint(b)
	if err == nil && n > uint64(len(rest)) {
		err = vfs.ErrCorrupt
	}
	if err != nil {
		return nil, nil, err
	}
	return rest[:n], rest[n:], nil
}

// chunkHead is the body of a chunk's frame without the stored bytes.
func chunkHead(c *vfs.Chunk) []byte {
	b := append(c.ID[:len(c.ID):len(c.ID)], byte(c.Codec))
	return binary.AppendUvarint(b, uint64(c.PlainLen))
}

// decodeChunk is the inverse. Stored is a copy.
func decodeChunk(b []byte) (c vfs.Chunk, err error) {
	if len(b) <= chunk.IDSize {
		return c, vfs.ErrCorrupt
	}
	c.ID, c.Codec = chunk.ID(b), chunk.Codec(b[chunk.IDSize])
	n, stored, err := cutUvarint(b[chunk.IDSize+1:])
	if err != nil || n > chunk.MaxSize {
		return c, vfs.ErrCorrupt
	}
	c.PlainLen, c.Stored = int(n), append([]byte{}, stored...)
	return c, nil
}

// streamedSnapshot is a snapshot in a backup.
type streamedSnapshot struct {
	created       vfs.Time
	name, message string
}

func (p *streamedSnapshot) encode() []byte {
	b := binary.AppendVarint(nil, int64(p.created))
	b = binary.AppendUvarint(b, uint64(len(p.name)))
	return append(append(b, p.name...), p.message...)
}

func decodeStreamedSnapshot(b []byte) (p streamedSnapshot, err error) {
	created, b, err := cutUvarint(b)
	if err != nil {
		return p, err
	}
	name, message, err := cutBytes(b)
	if err == nil && len(message) > maxMessage {
		err = vfs.ErrCorrupt
	}
	return streamedSnapshot{created: unzigzag(created), name: string(name), message: string(message)}, err
}
