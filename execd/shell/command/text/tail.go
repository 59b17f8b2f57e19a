package text

import (
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var tailOptions = getopt.New("c:fFn:qs:vz", "bytes:=c", "follow::=f", "lines:=n", "quiet=q", "silent=q", "verbose=v",
	"zero-terminated=z", "retry=retry", "pid:", "sleep-interval:=s", "max-unchanged-stats:=pid")

// followEvery is how often tail -f looks for more.
const followEvery = 50 * time.Millisecond

func tail(ctx context.Context, c *tool.Call) error {
	c.Args = obsolete(c.Args)
	if len(c.Args) > 1 && len(c.Args[1]) > 1 && c.Args[1][0] == '+' && c.Args[1][1] >= '0' && c.Args[1][1] <= '9' {
		c.Args = append([]string{c.Args[0], "-n", c.Args[1]}, c.Args[2:]...)
	}
	options, files, err := c.Options(tailOptions, 1)
	if err != nil {
		return err
	}
	e := end{n: 10, delim: '\n'}
	for _, o := range options {
		switch o.Name {
		case "c", "n":
			e.bytes = o.Name == "c"
			digits, plus := strings.CutPrefix(o.Value, "+")
			e.other = plus
			if !plus {
				digits = strings.TrimPrefix(digits, "-")
			}
			if e.n, err = endCount(c, e.bytes, digits); err != nil {
				return err
			}
		case "F":
			e.follow = true
		default:
			e.set(o.Name)
		}
	}
	headings := &headings{Call: c, on: e.header > 0 || e.header == 0 && len(files) > 1}
	err = tailEach(ctx, c, files, e, headings)
	if err == nil && e.follow && len(files) > 0 {
		return follow(ctx, c, files, headings)
	}
	return err
}

func tailEach(ctx context.Context, c *tool.Call, files []string, e end, h *headings) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		err := tailFile(ctx, c, name, e, h)
		if err == nil {
			continue
		}
		if tool.Ends(ctx, err) {
			return err
		}
		if tool.IsDir(err) {
			err = c.FaultAt(ctx, "error reading '"+name+"'", err)
		} else {
			err = c.FaultAt(ctx, "cannot open '"+name+"' for reading", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tailFile(ctx context.Context, c *tool.Call, name string, e end, h *headings) error {
	if name == "-" {
		h.print(name)
		return tailStream(c, c.Standard(ctx), e)
	}
	f, err := c.FS.Open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	h.print(name)
	if a, err := f.Stat(); err == nil && a.Type == vfs.TypeRegular && !e.other {
		if err := seekTail(ctx, c, f, int64(a.Size), e); err != nil {
			return err
		}
		_, err := io.Copy(c.Out, c.Count(ctx, f))
		return err
	}
	return tailStream(c, c.Count(ctx, f), e)
}

// seekTail puts f where its tail begins, reading back from the end.
func seekTail(ctx context.Context, c *tool.Call, f *treepath.File, size int64, e end) error {
	at := max(size-e.n, 0)
	if !e.bytes {
		var err error
		if at, err = lineFromEnd(ctx, c, f, size, e); err != nil {
			return err
		}
	}
	_, err := f.Seek(at, io.SeekStart)
	return err
}

func lineFromEnd(ctx context.Context, c *tool.Call, f io.ReaderAt, size int64, e end) (int64, error) {
	buf := make([]byte, 64<<10)
	left := e.n + 1 // the delimiter before the wanted lines, and the one that ends the last
	if left == 1 {
		return size, nil
	}
	for end := size; end > 0; {
		start := max(end-int64(len(buf)), 0)
		block := buf[:end-start]
		if _, err := f.ReadAt(block, start); err != nil && err != io.EOF {
			return 0, err
		}
		if err := c.Step(ctx, 64); err != nil {
			return 0, err
		}
		if end == size && block[len(block)-1] != e.delim {
			left--
		}
		for i := bytes.LastIndexByte(block, e.delim); i >= 0; i = bytes.LastIndexByte(block[:i], e.delim) {
			if left--; left == 0 {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}

func tailStream(c *tool.Call, in io.Reader, e end) error {
	switch {
	case e.other && e.bytes:
		if _, err := io.CopyN(io.Discard, in, e.n-1); err != nil && e.n > 1 {
			return notEOF(err)
		}
		_, err := io.Copy(c.Out, in)
		return err
	case e.other:
		return fromLine(c, in, e)
	case e.bytes:
		return lastBytes(c, in, e.n)
	}
	lines, last := c.Records(in, e.delim), &ring{call: c, size: e.n}
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if _, _, err := last.push(line, lines.Whole()); err != nil {
			return err
		}
	}
	for _, line := range last.all() {
		if err := writeLine(c, line.text, e.delim, line.whole); err != nil {
			return err
		}
	}
	return lines.Err()
}

func fromLine(c *tool.Call, in io.Reader, e end) error {
	lines := c.Records(in, e.delim)
	for n := int64(1); n < e.n; n++ {
		if _, ok := lines.Next(); !ok {
			return lines.Err()
		}
	}
	if _, err := c.Out.Write(lines.Buffered()); err != nil {
		return err
	}
	_, err := io.Copy(c.Out, in)
	return err
}

func lastBytes(c *tool.Call, in io.Reader, n int64) error {
	var held []byte
	buf := make([]byte, 64<<10)
	for {
		got, err := in.Read(buf)
		if grown := int64(len(held)+got) - int64(cap(held)); grown > 0 {
			if err := c.Take(grown); err != nil {
				return err
			}
		}
		held = append(held, buf[:got]...)
		if extra := int64(len(held)) - n; extra > max(n, 1<<20) || err != nil && extra > 0 {
			held = append(held[:0], held[extra:]...)
		}
		if err != nil {
			if _, err := c.Out.Write(held); err != nil {
				return err
			}
			return notEOF(err)
		}
	}
}

// follow prints what is added to the files until the command is ended.
func follow(ctx context.Context, c *tool.Call, files []string, h *headings) error {
	sizes := make([]uint64, len(files))
	for i, name := range files {
		if a, err := c.FS.Stat(ctx, name); err == nil {
			sizes[i] = a.Size
		}
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	last := len(files) - 1
	for {
		for i, name := range files {
			grown, err := printFrom(ctx, c, name, &sizes[i], h, i != last)
			if err != nil {
				return err
			}
			if grown {
				last = i
			}
		}
		if err := c.Out.Flush(); err != nil {
			return err
		}
		if err := c.Step(ctx, 1); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func printFrom(ctx context.Context, c *tool.Call, name string, size *uint64, h *headings, heading bool) (bool, error) {
	a, err := c.FS.Stat(ctx, name)
	if err != nil || a.Size == *size {
		return false, nil
	}
	if a.Size < *size {
		c.Say("%s: file truncated", name)
		*size = 0
	}
	f, err := c.FS.Open(ctx, name)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	if heading {
		h.print(name)
	}
	if _, err := f.Seek(int64(*size), io.SeekStart); err != nil {
		return false, err
	}
	n, err := io.Copy(c.Out, c.Count(ctx, f))
	*size += uint64(n)
	return true, err
}
