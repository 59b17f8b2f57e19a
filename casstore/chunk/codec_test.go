package chunk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// random returns n bytes that do not compress, the same ones for the same seed.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	rand.NewChaCha8(key).Read(b)
	return b
}

// text returns n bytes that compress well.
func text(n int) []byte {
	words := strings.Fields("inode dirent record chunk manifest revision snapshot fork authority mirror cursor epoch")
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(" \n"[r.IntN(2)])
	}
	return b.Bytes()[:n]
}

func TestEncodeDecode(t *testing.T) {
	mixed := append(random(1, MaxSize/2), text(MaxSize/2)...)
	cases := []struct {
		name       string
		plain      []byte
		fast, idle Codec
	}{
		{"empty", nil, Raw, Raw},
		{"one byte", []byte("x"), Raw, Raw},
		{"short text", text(200), S2, Zstd},
		{"text", text(AvgSize), S2, Zstd},
		{"largest text", text(MaxSize), S2, Zstd},
		{"random", random(1, AvgSize), Raw, Raw},
		{"largest random", random(2, MaxSize), Raw, Raw},
		{"random and then text", mixed, S2, Zstd},
		{"zeros", make([]byte, MaxSize), S2, Zstd},
		{"random but for a thirtieth", append(random(3, 30<<10-1<<10), make([]byte, 1<<10)...), Raw, Raw},
	}
	for _, c := range cases {
		check := func(encode func(dst, plain []byte) (Codec, []byte), want Codec) {
			codec, stored := encode(nil, c.plain)
			if codec != want || len(stored) > len(c.plain) {
				t.Errorf("%s: %s in %d bytes, want %s", c.name, codec, len(stored), want)
			}
			for _, dst := range [][]byte{nil, {}, make([]byte, 10), make([]byte, 2*MaxSize)} {
				plain, err := Decode(dst, codec, stored, len(c.plain))
				if err != nil || !bytes.Equal(plain, c.plain) {
					t.Errorf("%s: %s: %v, %d bytes", c.name, codec, err, len(plain))
				}
			}
		}
		check(Encode, c.fast)
		check(Recompress, c.idle)
	}
}

func TestDecodeRefuses(t *testing.T) {
	plain := text(5000)
	_, fast := Encode(nil, plain)
	_, idle := Recompress(nil, plain)
	huge := make([]byte, 10*MaxSize) // a zstd frame of it is some hundred bytes
	_, bomb := Recompress(nil, huge)
	_, half := Recompress(nil, plain[:len(plain)/2])
	var stream bytes.Buffer // its frame does not say how long the content is
	w, err := zstd.NewWriter(&stream, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{plain[:10], plain[10:]} {
		w.Write(part)
		w.Flush()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name     string
		codec    Codec
		stored   []byte
		plainLen int
	}{
		{"no codec", 0, plain, len(plain)},
		{"unknown codec", 4, plain, len(plain)},
		{"negative length", Raw, nil, -1},
		{"length over the largest", Raw, huge, len(huge)},
		{"raw, too short", Raw, plain, len(plain) + 1},
		{"raw, too long", Raw, plain, len(plain) - 1},
		{"s2, other length", S2, fast, len(plain) + 1},
		{"s2, cut short", S2, fast[:len(fast)-1], len(plain)},
		{"s2, nothing", S2, nil, 0},
		{"s2, huge length", S2, []byte("\xff\xff\xff\xff\x0f"), MaxSize},
		{"zstd, other length", Zstd, idle, len(plain) - 1},
		{"zstd, cut short", Zstd, idle[:len(idle)-1], len(plain)},
		{"zstd, nothing", Zstd, nil, 0},
		{"zstd, two frames", Zstd, append(bytes.Clone(idle), idle...), len(plain)},
		{"zstd, two halves", Zstd, append(bytes.Clone(half), half...), len(plain)},
		{"zstd, no content size", Zstd, stream.Bytes(), len(plain)},
		{"zstd, bomb", Zstd, bomb, MaxSize},
		{"s2 as zstd", Zstd, fast, len(plain)},
		{"zstd as s2", S2, idle, len(plain)},
	}
	for _, c := range cases {
		if got, err := Decode(nil, c.codec, c.stored, c.plainLen); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		}
	}
}

// The result of Decode is the caller's, so it must not be the stored bytes.
func TestDecodeRawCopies(t *testing.T) {
	stored := []byte("abc")
	plain, err := Decode(nil, Raw, stored, 3)
	if err != nil {
		t.Fatal(err)
	}
	plain[0] = 'x'
	if string(stored) != "abc" {
		t.Error("Decode returned its argument")
	}
}

func TestEncodeAllocates(t *testing.T) {
	for name, plain := range map[string][]byte{"text": text(AvgSize), "random": random(1, AvgSize)} {
		dst := make([]byte, EncodedCap(len(plain)))
		got := make([]byte, 0, len(plain))
		if n := testing.AllocsPerRun(20, func() {
			codec, stored := Encode(dst, plain)
			if _, err := Decode(got, codec, stored, len(plain)); err != nil {
				t.Error(err)
			}
		}); n > 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	run := func(name string, encode func(dst, plain []byte) (Codec, []byte), plain []byte) {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, EncodedCap(len(plain)))
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				encode(dst, plain)
			}
		})
	}
	run("text", Encode, text(AvgSize))
	run("random", Encode, random(1, AvgSize))
	run("text-idle", Recompress, text(AvgSize))
}

func BenchmarkDecode(b *testing.B) {
	plain := text(AvgSize)
	for _, encode := range []func(dst, plain []byte) (Codec, []byte){Encode, Recompress} {
		codec, stored := encode(nil, plain)
		b.Run(codec.String(), func(b *testing.B) {
			dst := make([]byte, len(plain))
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(dst, codec, stored, len(plain)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The values and names are part of the format and of what users see.
func TestCodecs(t *testing.T) {
	want := map[Codec]string{1: "raw", 2: "s2", 3: "zstd"}
	for c := range Codec(255) {
		name, valid := want[c]
		if c.Valid() != valid {
			t.Errorf("%d: Valid is %v", c, c.Valid())
		}
		if valid && c.String() != name {
			t.Errorf("%d is %s", c, c)
		}
	}
	if s := Codec(9).String(); s != "codec 9" {
		t.Error(s)
	}
}
