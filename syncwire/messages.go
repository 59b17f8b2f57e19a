package syncwire

import (
	"fmt"
	"math"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Types of frame. PROTOCOL.md says what each is for.
const (
	frameHello       frameType = 0x01
	frameWelcome     frameType = 0x02
	frameOpen        frameType = 0x03
	frameOpened      frameType = 0x04
	frameError       frameType = 0x08
	frameUnsupported frameType = 0x09
	framePing        frameType = 0x0a
	framePong        frameType = 0x0b
	frameDrain       frameType = 0x0c
	frameAck         frameType = 0x0d
	frameCancel      frameType = 0x0e

	frameWhere    frameType = 0x10
	framePosition frameType = 0x11
	frameGet      frameType = 0x12
	frameGot      frameType = 0x13
	frameSums     frameType = 0x14
	frameSummed   frameType = 0x15
	frameLease    frameType = 0x16
	frameLeased   frameType = 0x17
	frameMissing  frameType = 0x18
	frameMissed   frameType = 0x19

	frameAttach  frameType = 0x20
	frameBegin   frameType = 0x21
	frameRecords frameType = 0x22
	frameUpdate  frameType = 0x23

	framePush    frameType = 0x28
	frameChanges frameType = 0x29
	frameOutcome frameType = 0x2a

	frameFetch   frameType = 0x30
	frameChunk   frameType = 0x31
	frameFetched frameType = 0x32
	frameStore   frameType = 0x33
	frameStored  frameType = 0x34
)

// messages makes an empty message of each type.
var messages = map[frameType]func() message{
	frameHello:       func() message { return new(hello) },
	frameWelcome:     func() message { return new(welcome) },
	frameOpen:        func() message { return new(open) },
	frameOpened:      func() message { return new(opened) },
	frameError:       func() message { return new(failure) },
	frameUnsupported: func() message { return new(unsupported) },
	framePing:        func() message { return new(ping) },
	framePong:        func() message { return new(pong) },
	frameDrain:       func() message { return new(drain) },
	frameAck:         func() message { return new(ack) },
	frameCancel:      func() message { return new(cancel) },
	frameWhere:       func() message { return new(where) },
	framePosition:    func() message { return new(position) },
	frameGet:         func() message { return new(get) },
	frameGot:         func() message { return new(got) },
	frameSums:        func() message { return new(sums) },
	frameSummed:      func() message { return new(summed) },
	frameLease:       func() message { return new(lease) },
	frameLeased:      func() message { return new(leased) },
	frameMissing:     func() message { return new(missing) },
	frameMissed:      func() message { return new(missed) },
	frameAttach:      func() message { return new(attach) },
	frameBegin:       func() message { return new(begin) },
	frameRecords:     func() message { return new(records) },
	frameUpdate:      func() message { return new(update) },
	framePush:        func() message { return new(push) },
	frameChanges:     func() message { return new(changes) },
	frameOutcome:     func() message { return new(outcome) },
	frameFetch:       func() message { return new(fetch) },
	frameChunk:       func() message { return new(chunkMessage) },
	frameFetched:     func() message { return new(fetched) },
	frameStore:       func() message { return new(store) },
	frameStored:      func() message { return new(stored) },
}

// names are what PROTOCOL.md calls the types.
var names = map[frameType]string{
	frameHello: "hello", frameWelcome: "welcome", frameOpen: "open", frameOpened: "opened", frameError: "error",
	frameUnsupported: "unsupported", framePing: "ping", framePong: "pong", frameDrain: "drain", frameAck: "ack",
	frameCancel: "cancel",
	frameWhere:  "where", framePosition: "position", frameGet: "get", frameGot: "got", frameSums: "sums",
	frameSummed: "summed", frameLease: "lease", frameLeased: "leased", frameMissing: "missing", frameMissed: "missed",
	frameAttach: "attach", frameBegin: "begin", frameRecords: "records", frameUpdate: "update", framePush: "push",
	frameChanges: "changes", frameOutcome: "outcome", frameFetch: "fetch", frameChunk: "chunk", frameFetched: "fetched",
	frameStore: "store", frameStored: "stored",
}

func (t frameType) String() string {
	if name, ok := names[t]; ok {
		return name
	}
	return fmt.Sprintf("frame type 0x%02x", uint8(t))
}

// Fields that are in more than one message.

func revField(c *coder, name string, v *vfs.Rev) { number(c, name, v, math.MaxUint64) }
func inoField(c *coder, name string, v *vfs.Ino) { number(c, name, v, math.MaxUint64) }
func idField(c *coder, v *chunk.ID)              { c.fixed("id", v[:]) }

func flagField(c *coder, name string, v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	if number(c, name, &n, 1); c.mode == reading {
		*v = n == 1
	}
}

func cursorFields(c *coder, v *vfs.Cursor) {
	c.fixed("epoch", v.Epoch[:])
	revField(c, "rev", &v.Rev)
}

func positionFields(c *coder, v *vfs.Position) {
	cursorFields(c, &v.Cursor)
	revField(c, "oldest", &v.Oldest)
	digestField(c, &v.Digest)
}

func digestField(c *coder, v *vfs.Digest) {
	b := v.Bytes()
	if c.fixed("digest", b[:]); c.mode == reading {
		*v = vfs.DigestOf(b)
	}
}

func rangeFields(c *coder, v *vfs.InoRange) {
	inoField(c, "first", &v.First)
	if inoField(c, "last", &v.Last); !v.Valid() {
		c.fail("last", "%d is below %d", v.Last, v.First)
	}
}

func keyFields(c *coder, v *vfs.Key) {
	number(c, "kind", &v.Kind, uint64(vfs.KeyXattr))
	inoField(c, "ino", &v.Ino)
	c.text("name", &v.Name, vfs.MaxNameLen)
	if err := v.Valid(); c.mode == reading && c.err == nil && err != nil {
		c.fail("name", "%v", err)
	}
}

// valueField is a record's value behind its length plus one; zero alone is a tombstone.
func valueField(c *coder, v *[]byte) {
	n := 0
	if *v != nil {
		n = len(*v) + 1
	}
	if c.mode == wording {
		if n == 0 {
			c.say("value", "none")
		} else {
			c.fixed("value", *v)
		}
		return
	}
	number(c, "value", &n, vfs.MaxXattrSize+1)
	switch {
	case c.mode == writing:
		c.b = append(c.b, *v...)
	case n == 0:
		*v = nil
	default:
		*v = c.cut("value", n-1)
	}
}

func recordFields(c *coder, v *vfs.Record) {
	keyFields(c, &v.Key)
	revField(c, "rev", &v.Rev)
	valueField(c, &v.Value)
}

func pushRecordFields(c *coder, v *vfs.PushRecord) {
	keyFields(c, &v.Key)
	c.fixed("base", v.Base[:])
	valueField(c, &v.Value)
}
