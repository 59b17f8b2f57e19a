package execd

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// What is on disk is an event that can be written again, or an error; never anything else.
func FuzzParseFrame(f *testing.F) {
	f.Add(appendFrame(nil, Event{Seq: 1, Stream: Stdout, Data: []byte("data"), Time: time.Unix(1, 2)}))
	f.Add(appendFrame(nil, Event{Seq: 1 << 60, Stream: Exited, Offset: 1 << 50, Time: time.Unix(-1, 0)}))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := frameLen(b)
		if err == nil && (n == 0 || n > len(b)) {
			return
		}
		var e Event
		if err == nil {
			e, err = parseFrame(b[:n])
		}
		if err != nil {
			if !errors.Is(err, vfs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := parseFrame(appendFrame(nil, e))
		if err != nil || again.Seq != e.Seq || again.Offset != e.Offset || again.Stream != e.Stream ||
			!again.Time.Equal(e.Time) || !bytes.Equal(again.Data, e.Data) {
			t.Fatalf("%+v, %v, want %+v", again, err, e)
		}
	})
}
