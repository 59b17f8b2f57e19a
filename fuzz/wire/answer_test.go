package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// FuzzAnswer: whatever a server answers, a client gives what was asked for or an error, in time.
func FuzzAnswer(f *testing.F) {
	for _, b := range vectors(f) {
		for kind := range byte(len(calls)) {
			f.Add(append([]byte{kind}, b...))
		}
	}
	for kind, b := range answers() {
		f.Add(append([]byte{kind}, b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			if err := answered(t, b[0], b[1:]); errors.Is(err, errAnswer) {
				t.Fatalf("%x: %v", b[1:], err)
			}
		})
	})
}

// answered makes a call that a server answers so.
func answered(t *testing.T, kind byte, in []byte) error {
	call := calls[int(kind)%len(calls)]
	c := syncwire.NewClient(syncwire.ClientConfig{Dialer: &oneLink{in: in, control: call.control}, Workspace: "w"})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return call.make(ctx, c)
}

// The seeds are answers that a client takes; only a feed goes on, and then is cut off for good.
func TestAnswers(t *testing.T) {
	for kind, b := range answers() {
		synctest.Test(t, func(t *testing.T) {
			if err := answered(t, kind, b); (err != nil) != (kind == followCall) || err != nil && !errors.Is(err, vfs.ErrInterrupted) {
				t.Errorf("call %d: %v", kind, err)
			}
		})
	}
}

// errAnswer is for an answer that a client should not have believed.
var errAnswer = errors.New("wrong answer")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errAnswer, fmt.Sprintf(format, args...))
}

var (
	askedKeys   = []vfs.Key{{Kind: vfs.KeyInode, Ino: 300}, {Kind: vfs.KeyDirent, Ino: 1, Name: "caf\xe9"}}
	askedRanges = []vfs.InoRange{{First: 1, Last: 1}, {First: 2, Last: 9}}
	askedChunks = []chunk.ID{chunk.Sum([]byte("a")), chunk.Sum([]byte("b"))}
)

// followCall is the one of calls that does not end by itself.
const followCall = 8

// calls are what a client is asked for, by the first byte of the input. They are answered on the control stream, or on the next
// stream after it.
var calls = []struct {
	control bool
	make    func(context.Context, *syncwire.Client) error
}{
	{true, func(ctx context.Context, c *syncwire.Client) error {
		_, err := c.Wait(ctx, 5)
		return err
	}},
	{true, func(ctx context.Context, c *syncwire.Client) error {
		records, _, err := c.Get(ctx, askedKeys)
		if err == nil && len(records) != len(askedKeys) {
			return wrong("%d records", len(records))
		}
		return err
	}},
	{true, func(ctx context.Context, c *syncwire.Client) error {
		sums, _, err := c.Sums(ctx, askedRanges)
		if err == nil && len(sums) != len(askedRanges) {
			return wrong("%d sums", len(sums))
		}
		return err
	}},
	{true, func(ctx context.Context, c *syncwire.Client) error {
		in, err := c.LeaseInos(ctx, vfs.PeerID{}, 10)
		if err == nil && !in.Valid() {
			return wrong("a lease of %v", in)
		}
		return err
	}},
	{true, func(ctx context.Context, c *syncwire.Client) error {
		_, err := c.MissingChunks(ctx, askedChunks)
		return err
	}},
	{false, func(ctx context.Context, c *syncwire.Client) error {
		rest := askedChunks
		return c.ReadChunks(ctx, askedChunks, func(got vfs.Chunk) error {
			i := slices.Index(rest, got.ID)
			if _, err := got.Plain(nil); i < 0 || err != nil {
				return wrong("chunk %v: %v", got.ID, err)
			}
			rest = rest[i+1:]
			return nil
		})
	}},
	{false, func(ctx context.Context, c *syncwire.Client) error { return c.WriteChunks(ctx, nil) }},
	{false, func(ctx context.Context, c *syncwire.Client) error {
		_, err := c.Push(ctx, vfs.PeerID{}, vfs.Push{})
		return err
	}},
	{false, func(ctx context.Context, c *syncwire.Client) error { return c.Follow(ctx, vfs.AllInos, new(checker)) }},
	{false, func(ctx context.Context, c *syncwire.Client) error {
		_, err := c.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
			if err := r.Key.Valid(); err != nil {
				return wrong("%v", err)
			}
			return nil
		})
		return err
	}},
}

// checker is a follower that checks the form of what comes: parts that begin before their records and end after them.
type checker struct {
	cursor vfs.Cursor
	begun  bool
}

func (c *checker) Resume() (vfs.Cursor, vfs.Ino) {
	c.begun = false
	return c.cursor, 0
}

func (c *checker) Begin(syncwire.FeedPart) error {
	if c.begun {
		return wrong("a part in a part")
	}
	c.begun = true
	return nil
}

func (c *checker) Records(records []vfs.Record) error {
	for _, r := range records {
		if err := r.Key.Valid(); err != nil || !c.begun {
			return wrong("%v, %v, begun %t", r.Key, err, c.begun)
		}
	}
	return nil
}

func (c *checker) Update(u syncwire.FeedUpdate) error {
	if !c.begun {
		return wrong("an update of nothing")
	}
	c.begun, c.cursor = false, u.Position.Cursor
	return nil
}

// oneLink is a dialer to a server that says what is written down, and can be reached once.
type oneLink struct {
	in      []byte
	control bool // on the control stream; else on the one after it

	mu      sync.Mutex
	dialed  bool
	streams []*script
}

var errGone = errors.New("the server is gone")

func (l *oneLink) Dial(context.Context) (syncwire.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dialed {
		return nil, errGone
	}
	l.dialed = true
	return l, nil
}

func (l *oneLink) Open(context.Context) (syncwire.Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := newScript(l.in, nil)
	if len(l.streams) == 0 {
		s.greeting = bytes.NewReader(welcome)
		if s.until = s.asked; !l.control { // beside the hello
			s.until = s.closed
		}
	}
	l.streams = append(l.streams, s)
	return s, nil
}

func (l *oneLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		s.Close()
	}
	return nil
}

// welcome lets the client in, with all rights.
var welcome = frame(0x02, 1, 0, make([]byte, 16), 15, 0, make([]byte, 16), 7, 2, make([]byte, 32), 64, 4096, 32, 32, "server")

// answers are what a server says when all is well, by the call.
func answers() map[byte][]byte {
	at := append(make([]byte, 16), 9, 2)
	at = append(at, make([]byte, 32)...)
	record := func(k vfs.Key, rev byte, value string) []byte {
		b := binary.AppendUvarint([]byte{byte(k.Kind)}, uint64(k.Ino))
		b = append(append(b, byte(len(k.Name))), k.Name...)
		return append(append(b, rev, byte(len(value)+1)), value...)
	}
	records := append(record(askedKeys[1], 9, "x"), record(askedKeys[0], 9, "y")...)
	a := frame(0x31, askedChunks[0][:], 1, 1, "a")
	b := frame(0x31, askedChunks[1][:], 1, 1, "b")
	feed := slices.Concat(frame(0x21, 0, 0), frame(0x22, 2, records), frame(0x23, at, 0))
	return map[byte][]byte{
		0: frame(0x11, 1, at),
		1: slices.Concat(frame(0x13, 1, 9, 1, 1, record(askedKeys[0], 9, "y")), frame(0x13, 1, 9, 0, 1, record(askedKeys[1], 9, "x"))),
		2: frame(0x15, 1, 9, 2, make([]byte, 64)),
		3: frame(0x17, 1, 2, 11),
		4: frame(0x19, 1, 1, askedChunks[1][:]),
		5: slices.Concat(a, b, frame(0x32, 1)),
		6: frame(0x34, 1),
		7: frame(0x2a, 1, at, 8, 0, 0),
		8: slices.Concat(feed, frame(0x21, 9, 0), frame(0x23, at, 1, make([]byte, 16))),
		9: feed,
	}
}
