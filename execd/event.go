package execd

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Stream says what an event is.
type Stream byte

// The kinds of events.
const (
	Stdout Stream = 1 // bytes that were written to standard output, or to the terminal
	Stderr Stream = 2
	Exited Stream = 3 // the end: Data is a Result in JSON
	Gap    Stream = 4 // events that are not in the log any more
)

var streamNames = map[Stream]string{Stdout: "stdout", Stderr: "stderr", Exited: "exit", Gap: "gap"}

func (s Stream) String() string { return streamNames[s] }

// Event is something that happened in an exec.
type Event struct {
	// Seq is its number. A Gap has that of the last event that is missing, so that who attaches after it goes on behind it.
	Seq    uint64
	Time   time.Time // zero for a Gap
	Stream Stream
	Data   []byte // of the reader, until its next event
	// Offset is how many bytes of output came before.
	Offset uint64
	// First is the number of the first event that is missing, for a Gap, and Lost how many bytes of output they were, at
	// most.
	First, Lost uint64
}

// An event in a segment:
//
//	length of the body  4 bytes, big-endian
//	CRC-32C of the body 4 bytes
//	body                uvarint seq | uvarint offset | varint time, ns since 1970 | stream, 1 byte | data
const frameHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame adds an event to b.
func appendFrame(b []byte, e Event) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHeader)...)
	b = binary.AppendUvarint(b, e.Seq)
	b = binary.AppendUvarint(b, e.Offset)
	b = binary.AppendVarint(b, e.Time.UnixNano())
	b = append(b, byte(e.Stream))
	b = append(b, e.Data...)
	body := b[start+frameHeader:]
	binary.BigEndian.PutUint32(b[start:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	return b
}

// frameLen returns the length of the frame that b begins with, or 0 when b is too short to say.
func frameLen(b []byte) (int, error) {
	if len(b) < frameHeader {
		return 0, nil
	}
	n := binary.BigEndian.Uint32(b)
	if n > maxFrame+sealMost {
		return 0, fmt.Errorf("an event of %d bytes in a log: %w", n, vfs.ErrCorrupt)
	}
	return frameHeader + int(n), nil
}

// checkFrame verifies the checksum of a whole frame.
func checkFrame(b []byte) error {
	if crc32.Checksum(b[frameHeader:], castagnoli) != binary.BigEndian.Uint32(b[4:]) {
		return fmt.Errorf("an event in a log: checksum: %w", vfs.ErrCorrupt)
	}
	return nil
}

// parseFrame reads a whole frame. The event's data lies in b.
func parseFrame(b []byte) (Event, error) {
	if err := checkFrame(b); err != nil {
		return Event{}, err
	}
	body := b[frameHeader:]
	var e Event
	var n [3]int
	e.Seq, n[0] = binary.Uvarint(body)
	if n[0] > 0 {
		e.Offset, n[1] = binary.Uvarint(body[n[0]:])
	}
	if n[1] > 0 {
		var ns int64
		ns, n[2] = binary.Varint(body[n[0]+n[1]:])
		e.Time = time.Unix(0, ns)
	}
	rest := body[max(0, n[0])+max(0, n[1])+max(0, n[2]):]
	if n[2] <= 0 || len(rest) == 0 {
		return Event{}, fmt.Errorf("an event in a log: %w", vfs.ErrCorrupt)
	}
	e.Stream, e.Data = Stream(rest[0]), rest[1:]
	return e, nil
}
