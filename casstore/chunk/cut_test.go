package chunk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
)

// cut returns the lengths of the chunks of a stream that comes in pieces of the lengths that size returns.
func cut(plain []byte, size func() int) (lengths []int) {
	var c Cutter
	n := 0
	for len(plain) > 0 {
		k, ends := c.Cut(plain[:min(size(), len(plain))])
		plain = plain[k:]
		if n += k; ends {
			lengths = append(lengths, n)
			n = 0
		}
	}
	if n > 0 {
		lengths = append(lengths, n)
	}
	return lengths
}

// cutByLibrary is cut by the library's own reader.
func cutByLibrary(t *testing.T, plain []byte) (lengths []int) {
	t.Helper()
	c, err := chunkers.NewChunker("fastcdc-v1.0.0", bytes.NewReader(plain),
		&chunkers.ChunkerOpts{MinSize: MinSize, NormalSize: AvgSize, MaxSize: MaxSize})
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := c.Next() // io.EOF comes with a last chunk that is short, and after any other
		if len(b) > 0 {
			lengths = append(lengths, len(b))
		}
		if errors.Is(err, io.EOF) {
			return lengths
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func fixed(n int) func() int { return func() int { return n } }

// TestCutsAreTheLibrarys: the cuts are those of the library that they are made after, on all kinds of bytes, however
// these come in.
func TestCutsAreTheLibrarys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, plain := range map[string][]byte{
		"nothing":    nil,
		"a byte":     {1},
		"MinSize":    random(1, MinSize),
		"equal":      bytes.Repeat([]byte("a"), 3*MaxSize+5),
		"one chunk":  bytes.Repeat([]byte("a"), MaxSize),
		"period":     bytes.Repeat(random(2, 1000), 3000),
		"random":     random(3, 16<<20),
		"half zeros": append(make([]byte, 2<<20), random(4, 2<<20)...),
	} {
		want := cutByLibrary(t, plain)
		for pieces, size := range map[string]func() int{
			"all":    fixed(len(plain) + 1),
			"4 KiB":  fixed(4 << 10),
			"odd":    fixed(65_537),
			"random": func() int { return 1 + rnd.IntN(300_000) },
		} {
			if got := cut(plain, size); !slices.Equal(got, want) {
				t.Errorf("%s in pieces of %s: cut into %v, want %v", name, pieces, got, want)
			}
		}
	}
}

// A change of these numbers means that old and new files no longer share chunks.
func TestCutGolden(t *testing.T) {
	want := []int{
		156760, 173569, 162238, 140735, 151365, 137046, 139640, 171039, 67008, 151870, 211465, 171186, 231642, 31589,
	}
	if got := cut(random(42, 2<<20), fixed(1<<20)); !slices.Equal(got, want) {
		t.Errorf("cut into %v, want %v", got, want)
	}
}

// From any cut on, the rest of the cuts are found again.
func TestCutRestarts(t *testing.T) {
	plain := random(8, 4<<20)
	want := cut(plain, fixed(len(plain)))
	off := 0
	for i, n := range want {
		if got := cut(plain[off:], fixed(len(plain))); !slices.Equal(got, want[i:]) {
			t.Errorf("from cut %d at %d: %v, want %v", i, off, got, want[i:])
		}
		off += n
	}
}

// Of any stream the chunks have the lengths that they may have.
func TestCutLengths(t *testing.T) {
	for _, n := range []int{0, 1, MinSize - 1, MinSize, MinSize + 1, AvgSize, MaxSize, MaxSize + 1, 3<<20 + 7} {
		lengths := cut(random(uint64(n), n), fixed(50_000))
		sum := 0
		for i, k := range lengths {
			if sum += k; k == 0 || k > MaxSize || k < MinSize && i < len(lengths)-1 {
				t.Errorf("%d bytes: chunk %d has %d", n, i, k)
			}
		}
		if sum != n {
			t.Errorf("%d bytes: chunks of %d", n, sum)
		}
	}
}

// After a byte in front all but the first two chunks are the old ones.
func TestCutAfterInsertion(t *testing.T) {
	for seed := range uint64(8) {
		plain := random(seed, 8<<20)
		old, inserted := cut(plain, fixed(1<<20)), cut(append([]byte{'!'}, plain...), fixed(1<<20))
		same := 0
		for same < min(len(old), len(inserted)) && old[len(old)-1-same] == inserted[len(inserted)-1-same] {
			same++
		}
		if len(inserted)-same > 2 {
			t.Errorf("seed %d: %d new chunks", seed, len(inserted)-same)
		}
	}
}

func BenchmarkCutter(b *testing.B) {
	plain := random(1, 8<<20)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		var c Cutter
		for p := plain; len(p) > 0; {
			n, _ := c.Cut(p)
			p = p[n:]
		}
	}
}
