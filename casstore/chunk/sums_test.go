package chunk

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// checkSums compares what both ways give with another implementation.
func checkSums(t *testing.T, plains [][]byte) {
	t.Helper()
	ids := make([]ID, len(plains))
	for _, sums := range []func([]ID, [][]byte){Sums, sumsTwoAtOnce} {
		clear(ids)
		sums(ids, plains)
		for i, p := range plains {
			if want := sha256.Sum256(p); ids[i] != want {
				t.Fatalf("%d of %d, %d bytes: %v, want %x", i, len(plains), len(p), ids[i], want)
			}
		}
		if !twoAtOnce {
			break
		}
	}
}

func TestSums(t *testing.T) {
	b := make([]byte, 300)
	rand.NewChaCha8([32]byte{1}).Read(b)
	for n := range 200 {
		for m := range 200 {
			checkSums(t, [][]byte{b[:n], b[n : n+m/2]})
		}
	}
	checkSums(t, nil)
	checkSums(t, [][]byte{b})
	rnd, many := rand.New(rand.NewPCG(1, 2)), make([]byte, 2*MaxSize)
	rand.NewChaCha8([32]byte{2}).Read(many)
	for range 50 {
		var plains [][]byte
		for range rnd.IntN(9) {
			at := rnd.IntN(MaxSize)
			plains = append(plains, many[at:at+rnd.IntN([]int{100, 10_000, MaxSize}[rnd.IntN(3)])])
		}
		checkSums(t, plains)
	}
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("abc"), []byte{}, make([]byte, 56), make([]byte, 1000))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) { checkSums(t, [][]byte{a, b, c, d}) })
}

func BenchmarkSums(b *testing.B) {
	plains := make([][]byte, 4)
	for i := range plains {
		plains[i] = make([]byte, AvgSize)
	}
	ids := make([]ID, len(plains))
	b.SetBytes(int64(len(plains) * AvgSize))
	b.ReportAllocs()
	for b.Loop() {
		Sums(ids, plains)
	}
}
