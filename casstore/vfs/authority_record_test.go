package vfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// The hash of a record is part of the protocol.
func TestRecordHash(t *testing.T) {
	r := Record{Key: Key{KeyXattr, 258, "user.a"}, Value: []byte("v")}
	want := sha256.Sum256([]byte("\x03\x00\x00\x00\x00\x00\x00\x01\x02\x06user.av"))
	if got := r.Hash(); got != want {
		t.Errorf("hash %x, want %x", got, want)
	}
	if base := r.Base(); base != Base(want[:16]) {
		t.Errorf("base %x", base)
	}
	r.Value = nil
	if base := r.Base(); base != (Base{}) {
		t.Errorf("base of a tombstone %x", base)
	}
	r.Value = []byte{}
	if base := r.Base(); base == (Base{}) {
		t.Error("an empty attribute has no base")
	}
}

func TestRecordHashTakesNoMemory(t *testing.T) {
	r := Record{Key: Key{KeyDirent, 1, "name"}, Value: make([]byte, 100)}
	if n := testing.AllocsPerRun(100, func() { r.Hash() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeyValid(t *testing.T) {
	long := strings.Repeat("n", 256)
	for _, tt := range []struct {
		key  Key
		want error
	}{
		{Key{KeyInode, 1, ""}, nil},
		{Key{KeyDirent, 1, "a\xff"}, nil},
		{Key{KeyDirent, 1, long[:255]}, nil},
		{Key{KeyXattr, 1, "user.a/b"}, nil},
		{Key{KeyInode, 1, "a"}, ErrInvalid},
		{Key{KeyInode, 0, ""}, ErrInvalid},
		{Key{KeyDirent, 1, ""}, ErrInvalid},
		{Key{KeyDirent, 1, ".."}, ErrInvalid},
		{Key{KeyDirent, 1, long}, ErrNameTooLong},
		{Key{KeyXattr, 1, ""}, ErrInvalid},
		{Key{KeyXattr, 1, "a\x00"}, ErrInvalid},
		{Key{KeyXattr, 1, long}, ErrNameTooLong},
		{Key{0, 1, ""}, ErrInvalid},
		{Key{4, 1, ""}, ErrInvalid},
	} {
		if err := tt.key.Valid(); !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.key, err, tt.want)
		}
	}
}

// A digest does not depend on the order, and forgets what is removed.
func TestDigest(t *testing.T) {
	records := make([]Record, 100)
	var all, some, rest Digest
	for i := range records {
		records[i] = Record{Key: Key{Kind: KeyInode, Ino: Ino(i + 1)}, Value: []byte{byte(i)}}
		all.Add(&records[i])
		if i < 40 {
			some.Add(&records[i])
		} else {
			rest.Add(&records[i])
		}
	}
	if some.Plus(rest) != all {
		t.Error("the digests of parts do not add up")
	}
	if DigestOf(all.Bytes()) != all || len(all.String()) != 64 {
		t.Error("the digest's bytes are another digest's")
	}
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for i := range records {
		all.Remove(&records[i])
	}
	all.Add(&Record{Key: Key{Kind: KeyInode, Ino: 5}})
	if all != (Digest{}) {
		t.Error("something is left")
	}
}

func TestDigestBytes(t *testing.T) {
	var d Digest
	h := RecordHash{7: 1, 15: 2, 23: 3, 31: 4}
	d.AddHash(h)
	if d != (Digest{1, 2, 3, 4}) || d.String() != hex.EncodeToString(h[:]) {
		t.Errorf("%v", d)
	}
}

func TestChunkPlain(t *testing.T) {
	plain := []byte(strings.Repeat("carrel ", 1000))
	id := chunk.Sum(plain)
	codec, stored := chunk.Encode(nil, plain)
	var checker Checker
	spoils := map[string]func(*Chunk){
		"another id":      func(c *Chunk) { c.ID[0]++ },
		"another codec":   func(c *Chunk) { c.Codec = chunk.Zstd },
		"no codec":        func(c *Chunk) { c.Codec = 9 },
		"another length":  func(c *Chunk) { c.PlainLen++ },
		"a huge length":   func(c *Chunk) { c.PlainLen = 1 << 40 },
		"a length of one": func(c *Chunk) { c.PlainLen = -1 },
		"truncated":       func(c *Chunk) { c.Stored = c.Stored[:len(c.Stored)-1] },
		"nothing":         func(c *Chunk) { *c = Chunk{ID: chunk.Sum(nil), Codec: chunk.Raw} },
		"too long":        func(c *Chunk) { c.Stored = make([]byte, chunk.MaxSize+1) },
	}
	for _, good := range []Chunk{
		{ID: id, Codec: codec, PlainLen: len(plain), Stored: stored},
		{ID: id, Codec: chunk.Raw, PlainLen: len(plain), Stored: plain},
	} {
		if got, err := good.Plain(nil); err != nil || string(got) != string(plain) {
			t.Fatalf("%v: %q, %v", good.Codec, got, err)
		}
		if err := checker.Check(good); err != nil {
			t.Fatalf("%v: %v", good.Codec, err)
		}
		for name, spoil := range spoils {
			bad := good
			spoil(&bad)
			_, plainErr := bad.Plain(nil)
			if !errors.Is(plainErr, ErrCorrupt) {
				t.Errorf("%v, %s: %v", good.Codec, name, plainErr)
			}
			for at := range 6 { // one bad chunk among good ones
				list := slices.Repeat([]Chunk{good}, 6)
				list[at] = bad
				if err := checker.Check(list...); !errors.Is(err, ErrCorrupt) {
					t.Errorf("%v, %s, chunk %d of 6: %v", good.Codec, name, at, err)
				}
			}
		}
	}
}

// Pushes that differ in anything differ in their sum.
func TestPushSum(t *testing.T) {
	record := PushRecord{Record: Record{Key: Key{KeyXattr, 3, "user.x"}, Value: []byte{}}, Base: Base{1}}
	seen := make(map[PushSum]string)
	for name, change := range map[string]func(*PushRecord){
		"as it is":       func(*PushRecord) {},
		"removed":        func(r *PushRecord) { r.Value = nil },
		"another value":  func(r *PushRecord) { r.Value = []byte{0} },
		"another base":   func(r *PushRecord) { r.Base = Base{2} },
		"another key":    func(r *PushRecord) { r.Ino = 4 },
		"another name":   func(r *PushRecord) { r.Name = "user.y" },
		"value for name": func(r *PushRecord) { r.Name, r.Value = "user.", []byte("x") },
	} {
		r := record
		change(&r)
		sum := (&Push{Records: []PushRecord{r}}).Sum()
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s have one sum", name, other)
		}
		seen[sum] = name
	}
	one, two := (&Push{Records: []PushRecord{record}}).Sum(), (&Push{Records: []PushRecord{record, record}}).Sum()
	if one == two {
		t.Error("a record more makes no difference")
	}
}
