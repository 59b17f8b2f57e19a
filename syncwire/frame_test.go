package syncwire

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Frames come off a stream whole, however the bytes arrive, and the end of the stream is only good between them.
func TestFrameReader(t *testing.T) {
	var stream []byte
	for _, m := range samples() {
		stream = append(stream, mustFrame(t, m)...)
	}
	r := newFrameReader(iotest.OneByteReader(bytes.NewReader(stream)))
	for _, m := range samples() {
		typ, body, err := r.next(maxFrame)
		if err != nil || typ != m.frame() || !bytes.Equal(raw(typ, body), mustFrame(t, m)) {
			t.Fatalf("%v: %v, %v", m.frame(), typ, err)
		}
	}
	if _, _, err := r.next(maxFrame); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for n := 1; n < 6; n++ {
		r := newFrameReader(bytes.NewReader(mustFrame(t, &drain{Seconds: 1 << 20})[:n]))
		if _, _, err := r.next(maxFrame); err != io.ErrUnexpectedEOF {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// A header that announces megabytes takes none of them.
func TestFrameReaderMemory(t *testing.T) {
	head := []byte{byte(frameRecords), 0x40, 0, 0}
	if n := allocated(func() {
		r := newFrameReader(bytes.NewReader(head))
		if _, _, err := r.next(maxFrame); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	}); n > 4*growStep {
		t.Errorf("%d bytes taken for a frame that does not come", n)
	}
	if _, _, err := newFrameReader(bytes.NewReader(head)).next(maxFirstFrame); !errors.Is(err, ErrProtocol) {
		t.Errorf("over the limit: %v", err)
	}
}

// A large frame is not kept for the small ones after it.
func TestFrameReaderForgets(t *testing.T) {
	stream := append(raw(0x7f, make([]byte, maxFrame)), raw(0x7f, 1)...)
	r := newFrameReader(bytes.NewReader(stream))
	for range 2 {
		if _, _, err := r.next(maxFrame); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.buf) > growStep {
		t.Errorf("%d bytes are kept", cap(r.buf))
	}
}

// Decoding takes no more than some times the frame, whatever the frame says.
func TestDecodeMemory(t *testing.T) {
	body := []byte{0x80, 0x80, 1} // 16384 records of five bytes
	for range maxRecords {
		body = append(body, 1, 1, 0, 0, 0)
	}
	if n := allocated(func() {
		if err := decodeBody(body, new(records)); err != nil {
			t.Error(err)
		}
	}); n > 8<<20 {
		t.Errorf("%d bytes taken for %d", n, len(body))
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A message may be read, and sent to another peer, while it is sent: the race detector looks on.
func TestEncodeReadsOnly(t *testing.T) {
	var group sync.WaitGroup
	for _, m := range samples() {
		for range 2 {
			group.Go(func() { mustFrame(t, m) })
		}
	}
	group.Wait()
}

// A chunk goes out without being copied, and its frame is as any other.
func TestSendChunk(t *testing.T) {
	for _, n := range []int{1, keptBuffer - 50, keptBuffer, maxStored} {
		m := &chunkMessage{plainChunk(n)}
		var out recorder
		if err := newFrameWriter(&out).send(m); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.written, mustFrame(t, m)) {
			t.Errorf("a chunk of %d bytes is sent as another frame", n)
		}
	}
	m := &chunkMessage{plainChunk(maxStored)}
	w := newFrameWriter(&recorder{written: make([]byte, 0, 2*maxStored)})
	if took := allocated(func() { w.send(m) }); took > maxStored/2 {
		t.Errorf("%d bytes taken to send a chunk of %d", took, maxStored)
	}
}

// recorder is a stream that keeps what is written.
type recorder struct {
	Stream
	written []byte
}

func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func (r *recorder) Write(p []byte) (int, error) {
	r.written = append(r.written, p...)
	return len(p), nil
}

// What breaks a limit is not sent.
func TestAppendFrameLimits(t *testing.T) {
	dst := []byte("before")
	for _, m := range []message{
		&hello{Token: make([]byte, maxToken+1)},
		&lease{N: vfs.MaxLease + 1},
		&get{Keys: make([]vfs.Key, vfs.MaxGetKeys+1)},
		&records{Records: []vfs.Record{{Key: sampleEmpty.Key, Value: make([]byte, vfs.MaxXattrSize+1)}}},
	} {
		if out, err := appendFrame(dst, m); !errors.Is(err, ErrProtocol) || string(out) != "before" {
			t.Errorf("%v: %v, %q", m.frame(), err, out)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, tt := range []struct{ min, max, want uint16 }{{1, 1, 1}, {0, 9, 1}, {1, 0, 0}, {2, 9, 0}, {0, 0, 0}} {
		if got := (&hello{Min: tt.min, Max: tt.max}).version(); got != tt.want {
			t.Errorf("%d to %d: version %d, want %d", tt.min, tt.max, got, tt.want)
		}
	}
}
