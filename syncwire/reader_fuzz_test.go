package syncwire

import (
	"bytes"
	"io"
	"testing"
)

// FuzzReader: whatever the sizes in which it arrives, a stream of any bytes comes apart into frames that are its bytes again, until the first error.
func FuzzReader(f *testing.F) {
	var all []byte
	for _, m := range samples() {
		all = append(all, mustFrame(f, m)...)
	}
	f.Add(all)
	f.Add(all[:len(all)-1])
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newFrameReader(bytes.NewReader(stream))
		var again []byte
		for {
			typ, body, err := r.next(maxFrame)
			if err != nil {
				if err == io.EOF && len(again) != len(stream) {
					t.Fatalf("end after %d of %d bytes", len(again), len(stream))
				}
				break
			}
			again = append(again, raw(typ, body)...)
		}
		if !bytes.HasPrefix(stream, again) {
			t.Fatal("other bytes come out than went in")
		}
	})
}
