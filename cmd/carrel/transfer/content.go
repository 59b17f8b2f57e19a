package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// errShort is the error of a content that ends before its last run: the file was cut while it was read.
var errShort = errors.New("the file became shorter while it was read")

// eachPiece calls put for all bytes of a content that are not known to be zeros, in order, in pieces of at most
// len(buf) bytes, which must be a multiple of zeroBlock. p is part of buf.
func eachPiece(ctx context.Context, c Content, buf []byte, put func(off uint64, p []byte) error) error {
	runs, exact, err := c.Runs(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := eachPieceOfRun(ctx, c, run, exact, buf, put); err != nil {
			return err
		}
	}
	return nil
}

func eachPieceOfRun(
	ctx context.Context, c Content, run Run, exact bool, buf []byte, put func(uint64, []byte) error,
) error {
	for run.N > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(uint64(len(buf)), run.N)]
		if _, err := io.ReadFull(c, p); err != nil {
			return readError(err)
		}
		var err error
		if exact {
			err = put(run.Off, p)
		} else {
			err = putNonZero(run.Off, p, put)
		}
		if err != nil {
			return err
		}
		run.Off, run.N = run.Off+uint64(len(p)), run.N-uint64(len(p))
	}
	return nil
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errShort, io.ErrUnexpectedEOF)
	}
	return err
}

var zeros [zeroBlock]byte

// putNonZero calls put for the longest runs of p's blocks that are not all zero.
func putNonZero(off uint64, p []byte, put func(uint64, []byte) error) error {
	for len(p) > 0 {
		n := blocks(p, false)
		if n > 0 {
			if err := put(off, p[:n]); err != nil {
				return err
			}
		}
		n += blocks(p[n:], true)
		p, off = p[n:], off+uint64(n)
	}
	return nil
}

// blocks returns how many bytes at the start of p are in blocks that are all zero, or are not.
func blocks(p []byte, zero bool) int {
	n := 0
	for n < len(p) {
		b := p[n:min(len(p), n+zeroBlock)]
		if bytes.Equal(b, zeros[:len(b)]) != zero {
			break
		}
		n += len(b)
	}
	return n
}

// findRuns lists the runs of a file of size bytes by asking for the next data and the next hole. next returns false
// when no data follows.
func findRuns(
	size uint64, next func(off uint64) (data uint64, ok bool, err error), hole func(off uint64) (uint64, error),
) ([]Run, error) {
	var runs []Run
	for off := uint64(0); off < size; {
		data, ok, err := next(off)
		if err != nil || !ok || data >= size {
			return runs, err
		}
		if len(runs) == maxRuns-1 {
			return append(runs, Run{data, size - data}), nil
		}
		end, err := hole(data)
		if err != nil {
			return nil, err
		}
		end = min(max(end, data+1), size)
		runs = append(runs, Run{data, end - data})
		off = end
	}
	return runs, nil
}

// runReader reads the bytes of runs by position.
type runReader struct {
	runs   []Run
	readAt func(p []byte, off uint64) (int, error) // fewer bytes than asked for at the end of the file
}

func (r *runReader) Read(p []byte) (int, error) {
	for len(r.runs) > 0 && r.runs[0].N == 0 {
		r.runs = r.runs[1:]
	}
	if len(r.runs) == 0 {
		return 0, io.EOF
	}
	run := &r.runs[0]
	n, err := r.readAt(p[:min(uint64(len(p)), run.N)], run.Off)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.ErrUnexpectedEOF
	}
	run.Off, run.N = run.Off+uint64(n), run.N-uint64(n)
	return n, err
}
