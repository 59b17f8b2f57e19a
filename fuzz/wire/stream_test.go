package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Types of frames that the scripts need, as PROTOCOL.md numbers them.
const (
	helloType  = 0x01
	openType   = 0x03
	getType    = 0x12
	leaseType  = 0x16
	attachType = 0x20
	fetchType  = 0x30
)

// aChunk is one that the workspace has.
var aChunk = vfs.Chunk{ID: chunk.Sum([]byte("a")), Codec: chunk.Raw, PlainLen: 1, Stored: []byte("a")}

// frame makes a frame: of parts that are bytes, texts with their length before them, or integers of seven bits.
func frame(typ byte, parts ...any) []byte {
	out := []byte{typ, 0, 0, 0}
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = binary.AppendUvarint(out, uint64(p))
		case string:
			out = append(binary.AppendUvarint(out, uint64(len(p))), p...)
		case []byte:
			out = append(out, p...)
		}
	}
	binary.BigEndian.PutUint32(out, uint32(typ)<<24|uint32(len(out)-4))
	return out
}

var sessionKey = bytes.Repeat([]byte{7}, 32)

// What a session says before the stream that is fuzzed: it may write, and inode numbers are leased to it.
var (
	hello = frame(helloType, []byte("carrel"), 1, 1, 0, sessionKey, "w", make([]byte, 16), "token", "fuzz")
	lease = frame(leaseType, 1, 1000)
)

// Streams, by the first byte of the input.
const (
	anyStream = iota // with its first frame
	controlStream
	feedStream // kinds of open, from here on plus one
	pushStream
	bulkStream
	streams
)

type anyToken struct{}

func (anyToken) Verify(context.Context, []byte, string) (syncwire.Grant, error) {
	return syncwire.Grant{Subject: "fuzz", Rights: syncwire.RightRead | syncwire.RightWrite}, nil
}

// FuzzStream: whatever a client says, the server ends the stream with it, all that it says are frames, and the workspace is
// as its digest says, and a tree.
func FuzzStream(f *testing.F) {
	for _, frame := range vectors(f) {
		for kind := range byte(streams) {
			f.Add(append([]byte{kind}, frame...))
		}
	}
	for _, push := range pushes() {
		f.Add(append([]byte{pushStream}, push...))
	}
	epoch := append([]byte{1}, make([]byte, 15)...)
	all := []byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	f.Add(append([]byte{feedStream}, frame(attachType, epoch, 1, 0, all, 0)...)) // from where it stands
	f.Add(append([]byte{feedStream}, frame(attachType, epoch, 1, 1, all, 0)...)) // the rest of a snapshot
	f.Add(append([]byte{controlStream}, frame(getType, 1, 1, 1, 1, 0)...))
	f.Add(append([]byte{bulkStream}, frame(fetchType, 1, 1, aChunk.ID[:])...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		// In a bubble, because a server waits for seconds here and there for what a client does not say.
		synctest.Test(t, func(t *testing.T) {
			authority := wiretest.NewMemory(vfs.Epoch{1})
			if err := authority.WriteChunks(t.Context(), []vfs.Chunk{aChunk}); err != nil {
				t.Fatal(err)
			}
			said := serve(t, authority, b[0]%streams, b[1:])
			for rest := said; len(rest) > 0; {
				frame, err := syncwire.DecodeFrame(rest)
				if err != nil {
					t.Fatalf("the server says %x: %v", rest, err)
				}
				rest = rest[frame.Size():]
			}
			checkTree(t, authority)
		})
	})
}

// serve lets a server have a stream, and returns what it has said on it. The stream ends when the server has nothing more to
// say; a feed is told of one change before that.
func serve(t *testing.T, authority *wiretest.Memory, kind byte, in []byte) []byte {
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return authority, nil },
		Verifier: anyToken{},
	})
	defer server.Close()
	listener := make(scripts, 2)
	go server.Serve(context.Background(), listener)

	over, left := make(chan struct{}), make(chan struct{}) // the stream, and after it the session
	defer close(left)
	switch kind {
	case anyStream:
	case controlStream:
		in = slices.Concat(hello, in)
	default:
		listener <- newScript(slices.Concat(hello, lease), left)
		synctest.Wait()
		in = slices.Concat(frame(openType, sessionKey, int(kind)-1, ""), in)
	}
	s := newScript(in, over)
	listener <- s
	synctest.Wait()
	if kind == feedStream {
		chmodRoot(t, authority)
		synctest.Wait()
	}
	close(over)
	select {
	case <-s.closed:
	case <-time.After(time.Minute):
		t.Fatal("the server does not end the stream")
	}
	return s.said()
}

// chmodRoot makes a revision.
func chmodRoot(t *testing.T, a *wiretest.Memory) {
	root := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
	old, _, err := a.Get(t.Context(), []vfs.Key{root})
	if err != nil {
		t.Fatal(err)
	}
	inode, err := vfs.DecodeInode(old[0].Value)
	inode.Mode ^= 0o022
	if err == nil {
		_, err = a.Push(t.Context(), vfs.PeerID{9}, vfs.Push{Records: []vfs.PushRecord{{
			Record: vfs.Record{Key: root, Value: inode.Append(nil)}, Base: old[0].Base(),
		}}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkTree: the records are what the digest says, and a tree.
func checkTree(t *testing.T, a vfs.Authority) {
	t.Helper()
	var p vfs.Push
	var digest vfs.Digest
	position, err := a.Read(context.Background(), vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
		digest.Add(&r)
		r.Value = bytes.Clone(r.Value)
		p.Records = append(p.Records, vfs.PushRecord{Record: r})
		return nil
	})
	if err != nil || digest != position.Digest {
		t.Fatalf("digest %v, of the records %v, %v", position.Digest, digest, err)
	}
	if stale, err := vfs.CheckPush(nothing{}, &p); err != nil || len(stale) > 0 {
		t.Fatalf("no tree: %v, stale %v", err, stale)
	}
}

// nothing is a workspace without anything, to which every tree is a push.
type nothing struct{}

func (nothing) Value(vfs.Key) ([]byte, error)                       { return nil, nil }
func (nothing) Names(vfs.KeyKind, vfs.Ino, func(string) bool) error { return nil }
func (nothing) MayMake(vfs.Ino) (bool, error)                       { return true, nil }

// pushes are seeds that are applied: what is made of them is likelier to be than what is made of nothing.
func pushes() (all [][]byte) {
	text := []byte("text")
	inline := vfs.InodeRecord{
		Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: 4, Body: vfs.Body{Kind: vfs.BodyInline, Data: text},
	}
	linked := inline
	linked.Nlink, linked.Xattrs = 2, 1
	big := make([]byte, 2*vfs.MaxInline)
	extents := inline
	extents.Size = uint64(len(big))
	extents.Body = vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, []chunk.Entry{
		{ID: chunk.Sum(big), Len: uint64(len(big))},
	})}
	codec, stored := chunk.Encode(nil, big)
	id := chunk.Sum(big)
	bigChunk := frame(0x31, id[:], int(codec), len(big), string(stored))
	name := vfs.DirentRecord{Ino: 2, Type: vfs.TypeRegular}
	inode, dirent := vfs.Key{Kind: vfs.KeyInode, Ino: 2}, vfs.Key{Kind: vfs.KeyDirent, Ino: 1, Name: "a"}
	file := [][]byte{record(inode, inline.Append(nil)), record(dirent, name.Append(nil))}
	links := [][]byte{
		record(inode, linked.Append(nil)), record(dirent, name.Append(nil)),
		record(vfs.Key{Kind: vfs.KeyDirent, Ino: 1, Name: "b"}, name.Append(nil)),
		record(vfs.Key{Kind: vfs.KeyXattr, Ino: 2, Name: "user.a"}, text),
	}
	return [][]byte{
		pushOf(nil, file), pushOf(nil, links), append(pushOf(nil, file), pushOf(nil, file)...),
		pushOf(bigChunk, [][]byte{record(inode, extents.Append(nil)), file[1]}),
		pushOf(nil, [][]byte{record(inode, extents.Append(nil)), file[1]}),
	}
}

// record is a push record without a base.
func record(k vfs.Key, value []byte) []byte {
	out := binary.AppendUvarint([]byte{byte(k.Kind)}, uint64(k.Ino))
	out = append(append(out, byte(len(k.Name))), k.Name...)
	out = append(out, make([]byte, 16)...)
	return append(binary.AppendUvarint(out, uint64(len(value)+1)), value...)
}

// pushOf makes the frames of a push of up to one chunk. Its length is more than that of names and values, which is allowed.
func pushOf(chunk []byte, records [][]byte) []byte {
	chunks := 0
	if chunk != nil {
		chunks = 1
	}
	body := bytes.Join(records, nil)
	out := frame(0x28, 1, make([]byte, 16), chunks, len(records), len(body))
	return append(append(out, chunk...), frame(0x29, len(records), body)...)
}
