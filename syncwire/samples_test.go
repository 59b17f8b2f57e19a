package syncwire

import (
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// sequence fills b with n, n+1, …
func sequence(b []byte, n byte) {
	for i := range b {
		b[i] = n + byte(i)
	}
}

func samplePosition(rev vfs.Rev) vfs.Position {
	p := vfs.Position{Cursor: vfs.Cursor{Rev: rev}, Oldest: 2, Digest: vfs.Digest{1, 2, 3, 1<<64 - 1}}
	sequence(p.Epoch[:], 0)
	return p
}

var (
	sampleInode = vfs.Record{
		Key: vfs.Key{Kind: vfs.KeyInode, Ino: 300}, Rev: 1000,
		Value: (&vfs.InodeRecord{
			Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, UID: 1000, GID: 100, Size: 3, Mtime: 1, Ctime: 1, Btime: 1,
			Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte("abc")},
		}).Append(nil),
	}
	sampleDirent = vfs.Record{
		Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "caf\xe9"}, Rev: 1000,
		Value: (&vfs.DirentRecord{Ino: 300, Type: vfs.TypeRegular}).Append(nil),
	}
	sampleEmpty = vfs.Record{Key: vfs.Key{Kind: vfs.KeyXattr, Ino: 300, Name: "user.empty"}, Rev: 7, Value: []byte{}}
	sampleGone  = vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "old"}, Rev: 999}

	sampleRecords = []vfs.Record{sampleDirent, sampleGone, sampleInode, sampleEmpty}
	sampleIDs     = []chunk.ID{chunk.Sum([]byte("a")), chunk.Sum([]byte("b"))}
	sampleChunk   = vfs.Chunk{ID: sampleIDs[0], Codec: chunk.Raw, PlainLen: 1, Stored: []byte("a")}
)

func samplePushRecords() []vfs.PushRecord {
	out := make([]vfs.PushRecord, len(sampleRecords))
	for i, r := range sampleRecords {
		r.Rev = 0
		out[i] = vfs.PushRecord{Record: r}
	}
	out[1].Base = (&vfs.Record{Key: sampleGone.Key, Value: sampleDirent.Value}).Base()
	return out
}

// samples has one message of each type.
func samples() []message {
	h := &hello{Min: 1, Max: 2, Workspace: "demo", Token: []byte("secret"), Agent: "carrel 1.0"}
	sequence(h.Session[:], 0x20)
	sequence(h.Mirror[:], 0x40)
	o := &open{Session: h.Session, Kind: streamService, Service: "exec"}
	w := &welcome{
		Version: 1, Rights: RightRead | RightWrite, Expires: 1_800_000_000, Position: samplePosition(1000),
		PushRecords: vfs.MaxPushRecords, PushBytes: vfs.MaxPushBytes, Requests: 32, Streams: 16, Agent: "carrel 1.0",
	}
	sequence(w.Peer[:], 0x50)
	id := vfs.PushID{}
	sequence(id[:], 0x60)
	a := &attach{Since: samplePosition(998).Cursor, Range: vfs.AllInos}
	return []message{
		h, w, o, &opened{},
		&failure{numbered: numbered{9}, Code: codeOf(ErrRights), Text: "push: token does not allow this"},
		&unsupported{numbered: numbered{9}, Type: 0x7f}, &ping{numbered{1}}, &pong{numbered{1}}, &drain{Seconds: 30},
		&ack{Rev: 1000}, &cancel{numbered{2}},
		&where{numbered{2}, whereAfter, 1000}, &position{numbered{2}, samplePosition(1001)},
		&get{numbered: numbered{3}, Keys: []vfs.Key{sampleInode.Key, sampleDirent.Key}},
		&got{numbered: numbered{3}, Rev: 1000, Records: []vfs.Record{sampleInode, sampleDirent}},
		&sums{numbered: numbered{4}, Ranges: []vfs.InoRange{{First: 1, Last: 1}, {First: 2, Last: vfs.AllInos.Last}}},
		&summed{numbered: numbered{4}, Rev: 1000, Digests: []vfs.Digest{{}, {1, 2, 3, 4}}},
		&lease{numbered: numbered{5}, N: 4096}, &leased{numbered: numbered{5}, Range: vfs.InoRange{First: 8193, Last: 12288}},
		&missing{numbered: numbered{6}, IDs: sampleIDs}, &missed{numbered: numbered{6}, IDs: sampleIDs[1:]},
		a, &begin{Since: 998}, &records{Records: sampleRecords},
		&update{Position: samplePosition(1000), Own: []vfs.PushID{id}},
		&push{numbered: numbered{7}, ID: id, Chunks: 1, Records: 4, Bytes: 38}, &changes{Records: samplePushRecords()},
		&outcome{numbered: numbered{7}, Outcome: vfs.Outcome{Position: samplePosition(1001), Prev: 1000}},
		&fetch{numbered: numbered{8}, IDs: sampleIDs}, &chunkMessage{Chunk: sampleChunk}, &fetched{numbered: numbered{8}},
		&store{numbered: numbered{9}, Chunks: 1}, &stored{numbered: numbered{9}},
	}
}
