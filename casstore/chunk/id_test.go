package chunk

import (
	"errors"
	"strings"
	"testing"
)

// abc is the SHA-256 of "abc" (FIPS 180-4, example B.1).
const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestSumAndParse(t *testing.T) {
	id := Sum([]byte("abc"))
	if id.String() != abc {
		t.Errorf("Sum(abc) = %s", id)
	}
	for _, s := range []string{abc, strings.ToUpper(abc)} {
		if got, err := ParseID(s); err != nil || got != id {
			t.Errorf("ParseID(%q) = %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "ab", abc[1:], abc + "00", "g" + abc[1:]} {
		if got, err := ParseID(s); err == nil || !got.IsZero() {
			t.Errorf("ParseID(%q) = %s, %v", s, got, err)
		}
	}
}

func TestVerify(t *testing.T) {
	id := Sum([]byte("abc"))
	if err := Verify(id, []byte("abc")); err != nil {
		t.Error(err)
	}
	for _, b := range []string{"", "abd", "abcd"} {
		if err := Verify(id, []byte(b)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Verify of %q: %v", b, err)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	plain := random(1, AvgSize)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		Sum(plain)
	}
}
