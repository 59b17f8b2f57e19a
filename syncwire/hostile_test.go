package syncwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// foe is a peer that says what it likes.
type foe struct {
	t    *testing.T
	n    *lab
	m    *wiretest.Memory
	link Link
	key  sessionKey
}

// side is the foe's end of a stream.
type side struct {
	foe    *foe
	stream Stream
	r      *frameReader
}

func (f *foe) stream() *side {
	s, err := f.link.Open(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return &side{f, s, newFrameReader(s)}
}

// begin is an honest hello, but for what change does to it.
func (f *foe) begin(change ...func(*hello)) *side {
	m := &hello{Min: 1, Max: 1, Session: f.key, Workspace: "demo", Token: []byte("secret"), Mirror: [16]byte{66}}
	for _, c := range change {
		c(m)
	}
	return f.stream().send(m)
}

func (f *foe) session(token string) *side {
	s := f.begin(func(m *hello) { m.Token = []byte(token) })
	s.until(frameWelcome)
	return s
}

// open opens a stream of an honest session.
func (f *foe) open(kind streamKind) *side {
	f.session("secret")
	return f.stream().send(&open{Session: f.key, Kind: kind})
}

func (s *side) send(messages ...message) *side {
	for _, m := range messages {
		s.raw(mustFrame(s.foe.t, m))
	}
	return s
}

func (s *side) raw(b []byte) *side {
	s.stream.Write(b) // the server may have hung up already
	return s
}

// until reads up to a frame of a type, and returns its body.
func (s *side) until(want frameType) []byte {
	s.foe.t.Helper()
	for {
		typ, body, err := s.r.next(maxFrame)
		if err != nil {
			s.foe.t.Fatalf("%v instead of %v", err, want)
		}
		if typ == want {
			return bytes.Clone(body)
		}
	}
}

// code reads up to the next error, and returns its code; zero when the stream ends without one.
func (s *side) code() code {
	for {
		typ, body, err := s.r.next(maxFrame)
		if err != nil {
			return 0
		}
		if typ == frameError {
			var m failure
			if err := decodeBody(body, &m); err != nil {
				s.foe.t.Fatal(err)
			}
			return m.Code
		}
	}
}

// ended reports that the server has ended the stream, without a word.
func (s *side) ended() code {
	for {
		if _, _, err := s.r.next(maxFrame); err != nil {
			return 0
		}
	}
}

// root is a push that changes the root's times: what may be pushed.
func (f *foe) root(mtime vfs.Time) []vfs.PushRecord {
	key := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
	old, _, _ := f.m.Get(context.Background(), []vfs.Key{key})
	rec, _ := vfs.DecodeInode(old[0].Value)
	rec.Mtime = mtime
	return []vfs.PushRecord{{Record: vfs.Record{Key: key, Value: rec.Append(nil)}, Base: old[0].Base()}}
}

// push is the head of a push of records.
func pushOf(id byte, chunks int, records []vfs.PushRecord) *push {
	m := &push{numbered: numbered{1}, ID: vfs.PushID{id}, Chunks: uint32(chunks), Records: uint32(len(records))}
	for _, r := range records {
		m.Bytes += uint32(len(r.Name) + len(r.Value))
	}
	return m
}

func dirent(name string, ino vfs.Ino) vfs.PushRecord {
	value := (&vfs.DirentRecord{Ino: ino, Type: vfs.TypeRegular}).Append(nil)
	return vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: name}, Value: value}}
}

func fileOf(ino vfs.Ino, body vfs.Body, size uint64) vfs.PushRecord {
	rec := vfs.InodeRecord{Type: vfs.TypeRegular, Nlink: 1, Body: body, Size: size}
	return vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: ino}, Value: rec.Append(nil)}}
}

const (
	codeProtocol   code = 128
	codeVersion    code = 129
	codeToken      code = 130
	codeRights     code = 131
	codeOverloaded code = 132
	codeNoService  code = 134
)

// hostile are what peers do, and the code with which they are answered; zero when the stream just ends.
var hostile = []struct {
	name string
	play func(f *foe) code
	want code
}{
	{"something else than the protocol", func(f *foe) code {
		return f.stream().raw([]byte("GET / HTTP/1.1\r\n\r\n")).ended()
	}, 0},
	{"a first frame over its limit", func(f *foe) code {
		return f.stream().raw([]byte{byte(frameHello), 0, 0x20, 1}).code()
	}, codeProtocol},
	{"a first frame of 16 MiB", func(f *foe) code {
		return f.stream().raw([]byte{byte(frameHello), 0xff, 0xff, 0xff}).code()
	}, codeProtocol},
	{"a first frame that is no beginning", func(f *foe) code { return f.stream().send(&ping{}).code() }, codeProtocol},
	{"a first frame that never ends", func(f *foe) code {
		return f.stream().raw([]byte{byte(frameHello), 0, 0, 50, 'c'}).ended()
	}, 0},
	{"a stream without a word", func(f *foe) code { return f.stream().ended() }, 0},
	{"a first frame a byte a second", func(f *foe) code {
		s := f.stream()
		for _, b := range mustFrame(f.t, &hello{}) {
			s.raw([]byte{b})
			time.Sleep(time.Second)
		}
		return s.ended()
	}, 0},
	{"another magic", func(f *foe) code { return f.stream().raw(raw(frameHello, "carbon", make([]byte, 90))).code() }, codeProtocol},
	{"versions of the future", func(f *foe) code {
		return f.begin(func(m *hello) { m.Min, m.Max = 2, 9 }).code()
	}, codeVersion},
	{"an unknown token", func(f *foe) code { return f.begin(func(m *hello) { m.Token = []byte("x") }).code() }, codeToken},
	{"no token", func(f *foe) code { return f.begin(func(m *hello) { m.Token = nil }).code() }, codeToken},
	{"a token of another workspace", func(f *foe) code {
		return f.begin(func(m *hello) { m.Workspace = "forbidden" }).code()
	}, codeToken},
	{"a workspace that there is not", func(f *foe) code {
		return f.begin(func(m *hello) { m.Workspace = "../demo" }).code()
	}, codes[vfs.ErrNoWorkspace]},
	{"guessing tokens", func(f *foe) (c code) {
		for range freeFailures + 1 {
			c = f.begin(func(m *hello) { m.Token = []byte("guess") }).code()
		}
		return c
	}, codeOverloaded},
	{"another's session key", func(f *foe) code { f.session("secret"); return f.begin().code() }, codeProtocol},
	{"a second hello on the control stream", func(f *foe) code {
		return f.session("secret").send(&hello{}).code()
	}, codeProtocol},
	{"a stream of no session", func(f *foe) code { return f.stream().send(&open{Kind: streamPush}).code() }, codeProtocol},
	{"a stream of no kind", func(f *foe) code { return f.open(99).code() }, codes[vfs.ErrNotSupported]},
	{"a service that there is not", func(f *foe) code { return f.open(streamService).code() }, codeNoService},
	{"more streams than are allowed", func(f *foe) (c code) {
		f.session("secret")
		for range maxStreams {
			f.stream().send(&open{Session: f.key, Kind: streamBulk})
		}
		time.Sleep(time.Second)
		return f.stream().send(&open{Session: f.key, Kind: streamBulk}).code()
	}, codeOverloaded},

	{"a control frame over its limit", func(f *foe) code {
		return f.session("secret").raw([]byte{byte(frameGet), 0x04, 0, 1}).code()
	}, codeProtocol},
	{"a frame for another stream", func(f *foe) code { return f.session("secret").send(&fetch{}).code() }, codeProtocol},
	{"an answer to nothing", func(f *foe) code { return f.session("secret").send(&position{}).code() }, codeProtocol},
	{"a frame that is cut off", func(f *foe) code {
		s := f.session("secret").raw(mustFrame(f.t, &where{})[:5])
		s.stream.CloseWrite()
		return s.ended()
	}, 0},
	{"a session that falls silent", func(f *foe) code { return f.session("secret").ended() }, 0},
	{"a key that is none", func(f *foe) code {
		return f.session("secret").raw(raw(frameGet, 1, 1, 2, 1, 1, "/")).code()
	}, codeProtocol},
	{"an interval that is none", func(f *foe) code {
		return f.session("secret").raw(raw(frameSums, 1, 1, 9, 3)).code()
	}, codeProtocol},
	{"a lease of nothing", func(f *foe) code { return f.session("secret").send(&lease{N: 0}).code() }, codes[vfs.ErrInvalid]},
	{"a lease by a reader", func(f *foe) code { return f.session("reader").send(&lease{N: 1}).code() }, codeRights},
	{"a hundred thousand pings", func(f *foe) code {
		s := f.session("secret")
		go io.Copy(io.Discard, s.stream)
		for range 100_000 {
			s.send(&ping{})
		}
		return 0
	}, 0},
	{"a hundred thousand frames that there are not", func(f *foe) code {
		s := f.session("secret")
		go io.Copy(io.Discard, s.stream)
		for range 100_000 {
			s.raw(raw(0x7e, 1))
		}
		return 0
	}, 0},
	{"ten thousand waits", func(f *foe) code {
		s := f.session("secret")
		before := runtime.NumGoroutine()
		for i := range uint64(10_000) {
			s.send(&where{numbered{i}, whereAfter, 1 << 40})
		}
		time.Sleep(time.Second)
		if n := runtime.NumGoroutine() - before; n > 2*maxRequests {
			f.t.Errorf("%d goroutines for one peer", n)
		}
		return 0
	}, 0},
	{"answers that nobody reads", func(f *foe) code {
		s := f.session("secret")
		f.n.window = 10_000
		for range 1000 {
			s.send(&sums{Ranges: []vfs.InoRange{vfs.AllInos, vfs.AllInos}})
		}
		return 0
	}, 0},

	{"a feed that begins with something else", func(f *foe) code { return f.open(streamFeed).send(&ping{}).code() }, codeProtocol},
	{"a feed of an interval that is none", func(f *foe) code {
		return f.open(streamFeed).raw(raw(frameAttach, make([]byte, 16), 0, 0, 5, 4, 0)).code()
	}, codeProtocol},
	{"one reading since the future", func(f *foe) code {
		since := vfs.Cursor{Epoch: vfs.Epoch{1}, Rev: 1 << 60}
		return f.open(streamFeed).send(&attach{Since: since, Range: vfs.AllInos, Once: true}).code()
	}, codes[vfs.ErrVoidCursor]},
	{"one reading since another epoch", func(f *foe) code {
		since := vfs.Cursor{Epoch: vfs.Epoch{9}, Rev: 1}
		return f.open(streamFeed).send(&attach{Since: since, Range: vfs.AllInos, Once: true}).code()
	}, codes[vfs.ErrVoidCursor]},
	{"a feed that talks", func(f *foe) code {
		s := f.open(streamFeed).send(&attach{Range: vfs.AllInos})
		for range 100 {
			s.raw(make([]byte, 100_000))
		}
		s.until(frameUpdate)
		return 0
	}, 0},
	{"a feed that nobody reads", func(f *foe) code {
		w := newWriter(f.t, f.m, 9)
		w.push(w.text("file", 5000))
		f.n.window = 100_000
		s := f.open(streamFeed).send(&attach{Range: vfs.AllInos})
		time.Sleep(2 * stallTimeout)
		if code := s.ended(); code != 0 {
			return code
		}
		return 0
	}, 0},
	{"a snapshot that is left in the middle", func(f *foe) code {
		w := newWriter(f.t, f.m, 9)
		w.push(w.text("file", 5000))
		s := f.open(streamFeed).send(&attach{Range: vfs.AllInos})
		s.until(frameRecords)
		s.stream.Close()
		return 0
	}, 0},

	{"a push by a reader", func(f *foe) code {
		f.session("reader")
		return f.stream().send(&open{Session: f.key, Kind: streamPush}, pushOf(1, 0, f.root(1)), &changes{f.root(1)}).code()
	}, codeRights},
	{"a push of too many records", func(f *foe) code {
		return f.open(streamPush).raw(raw(framePush, 1, make([]byte, 16), 0, 0x81, 0x80, 4, 0)).code()
	}, codeProtocol},
	{"more records than the push said", func(f *foe) code {
		return f.open(streamPush).send(pushOf(1, 0, f.root(1)), &changes{append(f.root(1), dirent("a", 2))}).code()
	}, codeProtocol},
	{"more bytes than the push said", func(f *foe) code {
		m := pushOf(1, 0, f.root(1))
		m.Bytes--
		return f.open(streamPush).send(m, &changes{f.root(1)}).code()
	}, codeProtocol},
	{"records without end and without records", func(f *foe) code {
		return f.open(streamPush).send(pushOf(1, 0, f.root(1)), &changes{}).code()
	}, codeProtocol},
	{"records where chunks should be", func(f *foe) code {
		return f.open(streamPush).send(pushOf(1, 1, f.root(1)), &changes{f.root(1)}).code()
	}, codeProtocol},
	{"a name with a slash", func(f *foe) code {
		body := append([]byte{1, 2, 1, 3}, "a/b"...)
		return f.open(streamPush).send(pushOf(1, 0, []vfs.PushRecord{dirent("abc", 2)})).
			raw(raw(frameChanges, body, make([]byte, 16), 0)).code()
	}, codeProtocol},
	{"a chunk with other bytes", func(f *foe) code {
		c := plainChunk(1000)
		c.Stored[5]++
		return f.open(streamPush).send(pushOf(1, 1, f.root(1)), &chunkMessage{c}, &changes{f.root(1)}).code()
	}, codes[vfs.ErrCorrupt]},
	{"a chunk of a codec that there is not", func(f *foe) code {
		c := plainChunk(1000)
		c.Codec = 200
		return f.open(streamPush).send(pushOf(1, 1, f.root(1)), &chunkMessage{c}, &changes{f.root(1)}).code()
	}, codes[vfs.ErrCorrupt]},
	{"a chunk that says it is much longer", func(f *foe) code {
		c := plainChunk(10)
		c.Codec, c.PlainLen = chunk.S2, chunk.MaxSize
		return f.open(streamPush).send(pushOf(1, 1, f.root(1)), &chunkMessage{c}, &changes{f.root(1)}).code()
	}, codes[vfs.ErrCorrupt]},
	{"a chunk too many", func(f *foe) code {
		c := &chunkMessage{plainChunk(10)}
		return f.open(streamPush).send(pushOf(1, 1, f.root(1)), c, c).code()
	}, codeProtocol},
	{"a name that leads nowhere", func(f *foe) code {
		records := append(f.root(1), dirent("a", 500))
		return f.open(streamPush).send(pushOf(1, 0, records), &changes{records}).code()
	}, codes[vfs.ErrInvalid]},
	{"an inode number of somebody else", func(f *foe) code {
		records := append(f.root(1), dirent("a", 1<<40), fileOf(1<<40, vfs.Body{}, 0))
		return f.open(streamPush).send(pushOf(1, 0, records), &changes{records}).code()
	}, codes[vfs.ErrNotPermitted]},
	{"a record that does not decode", func(f *foe) code {
		records := f.root(1)
		records[0].Value = []byte("record")
		return f.open(streamPush).send(pushOf(1, 0, records), &changes{records}).code()
	}, codes[vfs.ErrCorrupt]},
	{"a key twice", func(f *foe) code {
		records := append(f.root(1), f.root(2)...)
		return f.open(streamPush).send(pushOf(1, 0, records), &changes{records}).code()
	}, codes[vfs.ErrInvalid]},
	{"a push based on nothing", func(f *foe) code {
		records := f.root(1)
		records[0].Base = vfs.Base{}
		s := f.open(streamPush).send(pushOf(1, 0, records), &changes{records})
		var m outcome
		if err := decodeBody(s.until(frameOutcome), &m); err != nil || len(m.Outcome.Stale) != 1 {
			f.t.Errorf("%+v, %v", m, err)
		}
		return 0
	}, 0},
	{"a push without its chunks", func(f *foe) code {
		in, err := f.m.LeaseInos(context.Background(), peerID("tester", [16]byte{66}), 1)
		if err != nil {
			f.t.Fatal(err)
		}
		body, size := bodyOf(plainChunk(5000))
		records := append(f.root(1), dirent("a", in.First), fileOf(in.First, body, size))
		s := f.open(streamPush).send(pushOf(1, 0, records), &changes{records})
		var m outcome
		if err := decodeBody(s.until(frameOutcome), &m); err != nil || len(m.Outcome.Missing) != 1 {
			f.t.Errorf("%+v, %v", m, err)
		}
		return 0
	}, 0},
	{"a push that is cut off", func(f *foe) code {
		s := f.open(streamPush).send(pushOf(1, 0, append(f.root(1), dirent("a", 2))), &changes{f.root(1)})
		s.stream.CloseWrite()
		return s.ended()
	}, 0},
	{"a push that stalls", func(f *foe) code {
		return f.open(streamPush).send(pushOf(1, 5, f.root(1)), &chunkMessage{plainChunk(10)}).ended()
	}, 0},
	{"all the memory for pushes that never come", func(f *foe) code {
		f.session("secret")
		for range maxStreams {
			f.stream().send(&open{Session: f.key, Kind: streamPush},
				&push{Chunks: maxPushChunks, Records: vfs.MaxPushRecords, Bytes: vfs.MaxPushBytes})
		}
		return 0 // the honest client is not kept waiting
	}, 0},

	{"a fetch of what there is not", func(f *foe) code {
		f.open(streamBulk).send(&fetch{IDs: sampleIDs}).until(frameFetched)
		return 0
	}, 0},
	{"a fetch of too many", func(f *foe) code {
		return f.open(streamBulk).raw(raw(frameFetch, 1, 0x81, 0x20)).code()
	}, codeProtocol},
	{"a chunk that was not announced", func(f *foe) code {
		return f.open(streamBulk).send(&chunkMessage{plainChunk(10)}).code()
	}, codeProtocol},
	{"a chunk to be stored with other bytes", func(f *foe) code {
		c := plainChunk(10)
		c.ID[0]++
		return f.open(streamBulk).send(&store{Chunks: 1}, &chunkMessage{c}).code()
	}, codes[vfs.ErrCorrupt]},
	{"chunks of a reader", func(f *foe) code {
		f.session("reader")
		return f.stream().send(&open{Session: f.key, Kind: streamBulk}, &store{Chunks: 1}).code()
	}, codeRights},
	{"chunks that nobody fetches to the end", func(f *foe) code {
		f.n.window = 100_000
		c := plainChunk(chunk.MaxSize)
		if err := f.m.WriteChunks(context.Background(), []vfs.Chunk{c}); err != nil {
			f.t.Fatal(err)
		}
		ids := make([]chunk.ID, vfs.MaxChunkIDs)
		for i := range ids {
			ids[i] = c.ID
		}
		s := f.open(streamBulk).send(&fetch{IDs: ids})
		time.Sleep(2 * stallTimeout)
		return s.ended()
	}, 0},
	{"unsupported without end", func(f *foe) code {
		s := f.session("secret").send(&unsupported{Type: 0x7f}, &failure{}, &ping{})
		s.until(framePong)
		return 0
	}, 0},
}

// Whatever a peer does, it gets the answer that is due, the workspace stays as it is, an honest client is served
// beside it, and when it has gone nothing of it is left.
func TestHostile(t *testing.T) {
	if len(hostile) < 40 {
		t.Errorf("only %d ways to be hostile", len(hostile))
	}
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, ServerConfig{Memory: 160 << 20}, func(t *testing.T, n *lab, m *wiretest.Memory, s *Server) {
				link, err := n.Dial(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				f := &foe{t: t, n: n, m: m, link: link, key: sessionKey{1, 2, 3}}
				if got := tt.play(f); got != tt.want {
					t.Errorf("answered with code %d, want %d", got, tt.want)
				}
				synctest.Wait()
				honest(t, n, m)
				link.Close()
				time.Sleep(2 * stallTimeout)
				synctest.Wait()
				if left := s.Stats().Sessions; len(left) != 0 {
					t.Errorf("a session is left: %+v", left)
				}
			})
		})
	}
}

// honest is a client that wants what is due to it, at once.
func honest(t *testing.T, n *lab, m *wiretest.Memory) {
	n.window = 64 << 20
	before, err := m.Position(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if before.Rev > 2 { // the test itself makes one
		t.Errorf("the workspace is at revision %d", before.Rev)
	}
	c := client(t, n, 1, "secret")
	start := time.Now()
	w := newWriter(t, c, 0)
	p := w.text("honest", 3)
	o, err := c.Push(context.Background(), vfs.PeerID{}, p)
	if err != nil || o.Prev != before.Rev || !o.Applied() {
		t.Errorf("an honest push: %+v, %v", o, err)
	}
	if took := time.Since(start); took > 10*oneWay && !errors.Is(err, ErrOverloaded) {
		t.Errorf("an honest client waits %v", took)
	}
	c.Close()
}
