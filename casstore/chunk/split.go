package chunk

import (
	"errors"
	"fmt"
	"io"
	"sync"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // registers the algorithm below
)

// splitAlgorithm is FastCDC with masks made for AvgSize. The library's plain "fastcdc" keeps the masks of 8 KiB chunks
// whatever the size, so with ours it would cut almost everything at MinSize.
const splitAlgorithm = "fastcdc-v1.0.0"

// Splitter cuts a stream into chunks where its content says so. Where a chunk ends depends only on the bytes since
// the end of the one before: a stream that starts at an old cut is cut in the same places, and after an insertion the
// old cuts are found again. The cuts are the same in every process and on every machine.
//
// A Splitter is for one goroutine at a time.
type Splitter struct {
	chunker *chunkers.Chunker
	err     error // what Next returns from now on
}

// idleChunkers holds chunkers with their scan buffers, 1 MiB each.
var idleChunkers = sync.Pool{New: func() any {
	c, err := chunkers.NewChunker(splitAlgorithm, nil, &chunkers.ChunkerOpts{
		MinSize: MinSize, NormalSize: AvgSize, MaxSize: MaxSize,
	})
	if err != nil {
		panic(err) // the options are constants
	}
	return c
}}

// NewSplitter returns a Splitter of what r gives. Close gives its buffer back.
func NewSplitter(r io.Reader) *Splitter {
	s := &Splitter{chunker: idleChunkers.Get().(*chunkers.Chunker)}
	s.Reset(r)
	return s
}

// Reset makes s start again, with r. s must not be closed.
func (s *Splitter) Reset(r io.Reader) {
	s.chunker.Reset(r)
	s.err = nil
}

// Next returns the next chunk, 1 to MaxSize bytes, and at least MinSize unless it is the last. The bytes are valid
// until the next call of a method of s. After the last chunk the error is io.EOF; an error of the reader comes back
// wrapped, at once, without the bytes before it that were not yet cut, and again from every later call.
func (s *Splitter) Next() ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	// The library gives io.EOF along with a last chunk that is shorter than MinSize, and after any other last chunk.
	b, err := s.chunker.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("split: %w", err)
		b = nil
	}
	s.err = err
	if len(b) > 0 {
		return b, nil
	}
	return nil, s.err
}

// Close gives the buffer back. The bytes that Next returned last are no longer valid, and s must not be used again.
// Closing twice is harmless.
func (s *Splitter) Close() {
	if s.chunker == nil {
		return
	}
	s.chunker.Reset(nil)
	idleChunkers.Put(s.chunker)
	s.chunker, s.err = nil, io.ErrClosedPipe
}
