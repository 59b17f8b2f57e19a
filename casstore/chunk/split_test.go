package chunk

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

// split returns the chunks of what r gives.
func split(t testing.TB, r io.Reader) [][]byte {
	t.Helper()
	s := NewSplitter(r)
	defer s.Close()
	var all [][]byte
	for {
		b, err := s.Next()
		if err == io.EOF {
			if b != nil {
				t.Error("bytes beside io.EOF")
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(b))
	}
}

func ids(chunks [][]byte) []ID {
	var ids []ID
	for _, c := range chunks {
		ids = append(ids, Sum(c))
	}
	return ids
}

func TestSplitJoins(t *testing.T) {
	for _, n := range []int{0, 1, MinSize - 1, MinSize, MinSize + 1, AvgSize, MaxSize, MaxSize + 1, 3<<20 + 7} {
		plain := random(uint64(n), n)
		chunks := split(t, bytes.NewReader(plain))
		if !bytes.Equal(bytes.Join(chunks, nil), plain) {
			t.Errorf("%d bytes: the chunks do not join to them", n)
		}
		for i, c := range chunks {
			if len(c) == 0 || len(c) > MaxSize || len(c) < MinSize && i < len(chunks)-1 {
				t.Errorf("%d bytes: chunk %d has %d", n, i, len(c))
			}
		}
	}
}

// A change of these numbers means that old and new files no longer share chunks.
func TestSplitGolden(t *testing.T) {
	want := []int{
		156760, 173569, 162238, 140735, 151365, 137046, 139640, 171039, 67008, 151870, 211465, 171186, 231642, 31589,
	}
	var got []int
	for _, c := range split(t, bytes.NewReader(random(42, 2<<20))) {
		got = append(got, len(c))
	}
	if !slices.Equal(got, want) {
		t.Errorf("cut into %v, want %v", got, want)
	}
}

func TestSplitOfEqualBytesEndsAtMaxSize(t *testing.T) {
	chunks := split(t, bytes.NewReader(bytes.Repeat([]byte("a"), 2*MaxSize+5)))
	if len(chunks) != 3 || len(chunks[0]) != MaxSize || len(chunks[2]) != 5 {
		t.Errorf("%d chunks", len(chunks))
	}
}

// However the bytes come in, they are cut in the same places.
func TestSplitOfSmallReads(t *testing.T) {
	plain := random(7, 2<<20)
	part := func(from, to int) io.Reader { return bytes.NewReader(plain[from:to]) }
	want := ids(split(t, bytes.NewReader(plain)))
	for name, r := range map[string]io.Reader{
		"half reads": iotest.HalfReader(bytes.NewReader(plain)),
		"data + EOF": iotest.DataErrReader(bytes.NewReader(plain)),
		"pieces":     io.MultiReader(part(0, 1), part(1, 70000), part(70000, len(plain))),
	} {
		if got := ids(split(t, r)); !slices.Equal(got, want) {
			t.Errorf("%s: other cuts", name)
		}
	}
}

// From any cut on, splitting finds the rest of the cuts again.
func TestSplitRestarts(t *testing.T) {
	plain := random(8, 4<<20)
	chunks := split(t, bytes.NewReader(plain))
	want := ids(chunks)
	off := 0
	for i, c := range chunks {
		if got := ids(split(t, bytes.NewReader(plain[off:]))); !slices.Equal(got, want[i:]) {
			t.Errorf("from cut %d at %d: other cuts", i, off)
		}
		off += len(c)
	}
}

func TestSplitAfterInsertion(t *testing.T) {
	for seed := range uint64(8) {
		plain := random(seed, 8<<20)
		old := map[ID]bool{}
		for _, id := range ids(split(t, bytes.NewReader(plain))) {
			old[id] = true
		}
		fresh := 0
		for _, id := range ids(split(t, io.MultiReader(bytes.NewReader([]byte{'!'}), bytes.NewReader(plain)))) {
			if !old[id] {
				fresh++
			}
		}
		if fresh > 2 {
			t.Errorf("seed %d: a byte in front makes %d new chunks", seed, fresh)
		}
	}
}

func TestSplitReaderFails(t *testing.T) {
	failure := errors.New("cable cut")
	s := NewSplitter(io.MultiReader(bytes.NewReader(random(9, MaxSize+100)), iotest.ErrReader(failure)))
	defer s.Close()
	for range 2 { // the first is cut before the failure is met
		s.Next()
	}
	for range 2 {
		if b, err := s.Next(); b != nil || !errors.Is(err, failure) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	s.Reset(bytes.NewReader([]byte("abc")))
	if b, err := s.Next(); string(b) != "abc" || err != nil {
		t.Errorf("after Reset: %q, %v", b, err)
	}
	if _, err := s.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestSplitAfterClose(t *testing.T) {
	s := NewSplitter(bytes.NewReader(nil))
	s.Close()
	s.Close()
	if _, err := s.Next(); err == nil || err == io.EOF {
		t.Errorf("Next after Close: %v", err)
	}
}

func BenchmarkSplitter(b *testing.B) {
	plain := random(1, 8<<20)
	r := bytes.NewReader(plain)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(plain)
		s := NewSplitter(r)
		for _, err := s.Next(); err == nil; _, err = s.Next() {
		}
		s.Close()
	}
}
