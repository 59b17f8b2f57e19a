package chunk

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// seed adds the cases of a file in testdata to a fuzz corpus.
func seed(f *testing.F, file string, add func([]byte)) {
	archive, err := txtar.ParseFile("testdata/" + file)
	if err != nil {
		f.Fatal(err)
	}
	for _, vector := range archive.Files {
		b, _ := parseVector(f, vector)
		add(b)
	}
}

func FuzzDecodeEntries(f *testing.F) {
	seed(f, "entries.txtar", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, rest, err := DecodeEntries(b, MaxInline)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		if again := append(AppendEntries(nil, entries), rest...); !bytes.Equal(again, b) {
			t.Fatalf("%x encodes to %x", b, again)
		}
		if m := NewManifest(entries); !slices.Equal(m.Entries(), entries) {
			t.Fatalf("%v becomes %v in a manifest", entries, m.Entries())
		}
	})
}

func FuzzDecodeNode(f *testing.F) {
	seed(f, "node.txtar", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := DecodeNode(b)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		if again := AppendNode(nil, n); !bytes.Equal(again, b) {
			t.Fatalf("%x encodes to %x", b, again)
		}
	})
}

func FuzzDecodeRoot(f *testing.F) {
	seed(f, "root.txtar", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := DecodeRoot(b)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		if again := append(AppendRoot(nil, r), rest...); !bytes.Equal(again, b) {
			t.Fatalf("%x encodes to %x", b, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	plain := bytes.Repeat([]byte("carrel "), 1000)
	for _, encode := range []func(dst, plain []byte) (Codec, []byte){Encode, Recompress} {
		codec, stored := encode(nil, plain)
		f.Add(uint8(codec), stored, uint32(len(plain)))
	}
	f.Add(uint8(Raw), plain, uint32(len(plain)))
	f.Fuzz(func(t *testing.T, codec uint8, stored []byte, plainLen uint32) {
		got, err := Decode(nil, Codec(codec), stored, int(plainLen))
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		if len(got) != int(plainLen) {
			t.Fatalf("%d bytes for %d", len(got), plainLen)
		}
	})
}

func wantCorrupt(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("not ErrCorrupt: %v", err)
	}
}
