package text

import (
	"context"
	"slices"
	"sync"
)

// sortChunk is how many lines are sorted between two looks at the context: some ten milliseconds.
const sortChunk = 1 << 14

// sort sorts stably: chunks first, on two goroutines, then merges of ever longer runs.
func (s *sorter) sort(ctx context.Context, lines []sortLine) ([]sortLine, error) {
	if len(lines) <= sortChunk {
		c := &comparer{sorter: s, ctx: ctx}
		slices.SortStableFunc(lines, c.order)
		return lines, c.err
	}
	half := (len(lines)/2 + sortChunk - 1) / sortChunk * sortChunk
	buf := make([]sortLine, len(lines))
	var errs [2]error
	var both sync.WaitGroup
	for i, part := range [][2]int{{0, half}, {half, len(lines)}} {
		both.Go(func() { errs[i] = s.sortPart(ctx, lines[part[0]:part[1]], buf[part[0]:part[1]]) })
	}
	both.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return buf, s.merge(ctx, lines[:half], lines[half:], buf)
}

// sortPart sorts lines in place with the help of buf.
func (s *sorter) sortPart(ctx context.Context, lines, buf []sortLine) error {
	c := &comparer{sorter: s, ctx: ctx}
	for chunk := range slices.Chunk(lines, sortChunk) {
		slices.SortStableFunc(chunk, c.order)
		if c.err != nil {
			return c.err
		}
		if err := s.Step(ctx, len(chunk)); err != nil {
			return err
		}
	}
	from, to := lines, buf
	for width := sortChunk; width < len(lines); width *= 2 {
		for at := 0; at < len(from); at += 2 * width {
			middle, end := min(at+width, len(from)), min(at+2*width, len(from))
			if err := s.merge(ctx, from[at:middle], from[middle:end], to[at:end]); err != nil {
				return err
			}
		}
		from, to = to, from
	}
	if len(lines) > 0 && &from[0] != &lines[0] {
		copy(lines, from)
	}
	return nil
}

// merge merges two sorted runs; equal lines of a come first.
func (s *sorter) merge(ctx context.Context, a, b, to []sortLine) error {
	c := &comparer{sorter: s, ctx: ctx}
	for i := range to {
		if i%sortChunk == sortChunk-1 {
			if err := s.Step(ctx, sortChunk/8); err != nil {
				return err
			}
		}
		if len(b) == 0 || len(a) > 0 && c.order(a[0], b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// comparer compares lines, which takes long when they are: it looks at the context by the bytes that it may have read, and
// calls all lines equal once that has ended.
type comparer struct {
	*sorter
	ctx   context.Context
	bytes int
	err   error
}

// comparePatience is how many bytes are compared between two looks: some milliseconds, even with the slowest of orders.
const comparePatience = 1 << 20

func (c *comparer) order(a, b sortLine) int {
	if c.bytes += min(len(a.text), len(b.text)); c.bytes >= comparePatience && c.err == nil {
		c.err = c.Step(c.ctx, c.bytes>>12)
		c.bytes = 0
	}
	if c.err != nil {
		return 0
	}
	return c.compare(&a, &b)
}
