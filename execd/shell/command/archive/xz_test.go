package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ulikunitz/xz"
)

// packed returns text as a stream of xz, of blocks of a size.
func packed(t *testing.T, text string, block int64, check byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 16, BlockSize: block, CheckSum: check}.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unlimited(int64) error { return nil }

// The guard passes all streams, and follows them to their end.
func TestXZGuard(t *testing.T) {
	random := make([]byte, 300_000) // which is stored, not packed
	seed := uint32(1)
	for i := range random {
		seed = seed*1664525 + 1013904223
		random[i] = byte(seed >> 24)
	}
	small, large := packed(t, "hello", 1<<40, xz.CRC64), packed(t, strings.Repeat("some words ", 30_000), 20_000, xz.SHA256)
	for name, stream := range map[string][]byte{
		"small": small, "empty": packed(t, "", 1<<40, xz.CRC32), "blocks": large, "stored": packed(t, string(random), 1<<40, xz.CRC32),
		"streams": append(bytes.Clone(small), large...), "padding": append(append(bytes.Clone(small), make([]byte, 8)...), small...),
		"many blocks": packed(t, strings.Repeat("x", 40_000), 100, xz.CRC64),
	} {
		for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r }} {
			g := newXZGuard(reader(bytes.NewReader(stream)), 1<<20, unlimited)
			out, err := io.ReadAll(g)
			if err != nil || !bytes.Equal(out, stream) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(out), len(stream), err)
			}
			if g.next == nil || g.skip != 0 || len(g.part) != 0 || g.want != 4 {
				t.Errorf("%s: it lost its way: %d to skip, %d of %d bytes of a part", name, g.skip, len(g.part), g.want)
			}
		}
		r, err := xzFormat.reader(bytes.NewReader(stream), unlimited)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A dictionary that is too large is refused before it is made, one that is not is counted.
func TestXZDictionary(t *testing.T) {
	stream := packed(t, "hello", 1<<40, xz.CRC64)
	const header = 12 // of the stream
	size := (int(stream[header]) + 1) * 4
	block := stream[header : header+size]
	at := bytes.Index(block, []byte{0x21, 1}) + 2
	for code, want := range map[byte]error{16: nil, 28: nil, 29: errDictionary, 40: errDictionary} {
		block[at] = code
		binary.LittleEndian.PutUint32(block[size-4:], crc32.ChecksumIEEE(block[:size-4]))
		taken := int64(0)
		r, err := xzFormat.reader(bytes.NewReader(stream), func(n int64) error { taken += n; return nil })
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if !errors.Is(err, want) {
			t.Errorf("%d: %v", code, err)
		}
		if want == nil && taken < 1<<16 || want != nil && taken != 0 {
			t.Errorf("%d: %d bytes counted", code, taken)
		}
	}
	full := errors.New("full")
	r, err := xzFormat.reader(bytes.NewReader(stream[:0]), unlimited)
	if err == nil || r != nil {
		t.Error("an empty stream is none")
	}
	block[at] = 16
	binary.LittleEndian.PutUint32(block[size-4:], crc32.ChecksumIEEE(block[:size-4]))
	if r, err = xzFormat.reader(bytes.NewReader(stream), func(int64) error { return full }); err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// What breaks the rules is an error of the format, wherever it is broken; the guard never panics.
func TestXZBroken(t *testing.T) {
	text := strings.Repeat("some words ", 60)
	stream := packed(t, text, 200, xz.CRC64)
	read := func(b []byte) (string, error) {
		r, err := xzFormat.reader(bytes.NewReader(b), unlimited)
		if err != nil {
			return "", err
		}
		out, err := io.ReadAll(r)
		return string(out), err
	}
	for i := range stream {
		broken := bytes.Clone(stream)
		broken[i] ^= 0x55
		// The length of a chunk may be too large, so long as the checksum fits what comes out.
		if out, err := read(broken); err == nil && out != text {
			t.Errorf("byte %d: no error", i)
		}
		if _, err := read(stream[:i]); err == nil {
			t.Errorf("%d bytes: no error", i)
		}
	}
}
