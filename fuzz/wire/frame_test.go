package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/carrelfs/carrel/syncwire"
)

// vectors returns the frames of syncwire's vectors, good and bad.
func vectors(t testing.TB) (frames [][]byte) {
	archive, err := txtar.ParseFile("../../syncwire/testdata/frames.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		text, _, _ := strings.Cut(string(f.Data), "verdict ")
		frame, err := hex.DecodeString(strings.ReplaceAll(text, "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		frames = append(frames, frame)
	}
	return frames
}

// Memory for a frame of n bytes: the reader's buffer, and then at most what lists of the smallest items take, which
// grow a quarter at a time: a record of five bytes is one of 64, five times over.
const (
	frameRoom = 96 << 10
	framePer  = 96
)

func FuzzFrame(f *testing.F) {
	for _, frame := range vectors(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame syncwire.Frame
		var err error
		bounded(t, frameRoom+framePer*uint64(len(b)), func() { frame, err = syncwire.DecodeFrame(b) })
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) && !isCoded(err) {
				t.Fatalf("an error without a number: %v", err)
			}
			return
		}
		checkFrame(t, b[:frame.Size()], frame)
	})
}

// checkFrame: a frame that was decoded is sent, cut and extended as the protocol says.
func checkFrame(t *testing.T, b []byte, frame syncwire.Frame) {
	t.Helper()
	says := frame.Type() + "\n" + frame.Fields()
	same := func(doing string, b []byte) syncwire.Frame {
		again, err := syncwire.DecodeFrame(b)
		if err != nil || again.Type()+"\n"+again.Fields() != says {
			t.Fatalf("%s\nbecomes, %s,\n%s\n%v", says, doing, again.Fields(), err)
		}
		return again
	}
	sent, err := frame.Append(nil)
	if err != nil {
		t.Fatalf("%s decodes and does not encode: %v", says, err)
	}
	if again, err := same("when it was sent", sent).Append(nil); err != nil || !bytes.Equal(again, sent) {
		t.Fatalf("%x is sent on as %x, %v", sent, again, err)
	}
	if !bytes.HasPrefix(b[4:], sent[4:]) {
		t.Fatalf("%x is sent as %x, which is more than fields of a later version fewer", b, sent)
	}
	if _, err := syncwire.DecodeFrame(b[:len(b)-1]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("without its last byte: %v", err)
	}
	if body := len(b) - 4 + 1; body <= 4<<20 {
		longer := append(bytes.Clone(b), 0x80)
		binary.BigEndian.PutUint32(longer, uint32(b[0])<<24|uint32(body))
		same("with a byte of a later version", longer)
	}
}
