package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// maxBlock is the largest block of dd, which is memory.
const maxBlock = 64 << 20

// blocks is what one dd does: it reads blocks of one size and writes blocks of another.
type blocks struct {
	*tool.Call
	ctx                              context.Context
	from, to                         string
	read, write, both                int64
	count, skip, seek                int64 // count is -1 for all
	countBytes, skipBytes, seekBytes bool
	whole                            bool // iflag=fullblock
	convert                          map[string]bool
	append                           bool
	status                           string

	in, out [2]int64 // whole and partial blocks
	written int64
	pending []byte // of the next block that is written
	sink    io.Writer
}

// ddConversions are those of conv= that are known.
var ddConversions = []string{"notrunc", "noerror", "sync", "fsync", "fdatasync", "ucase", "lcase", "swab", "excl", "nocreat", "sparse"}

func dd(ctx context.Context, c *tool.Call) error {
	for _, a := range c.Args[1:] {
		if a == "--help" || a == "--version" {
			_, _, err := c.Options(noOptions, 1)
			return err
		}
	}
	d := &blocks{Call: c, ctx: ctx, read: 512, write: 512, count: -1, convert: map[string]bool{}}
	for _, a := range c.Args[1:] {
		if a == "--" {
			continue
		}
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return c.Usage(1, "unrecognized operand '%s'", a)
		}
		if err := d.set(name, value, a); err != nil {
			return err
		}
	}
	if d.both > 0 {
		d.read, d.write = d.both, d.both
	}
	if d.read > maxBlock || d.write > maxBlock {
		return c.Die(1, "memory exhausted by input buffer of size %d bytes", max(d.read, d.write))
	}
	return d.run()
}

func (d *blocks) set(name, value, operand string) error {
	numbers := map[string]*int64{"bs": &d.both, "ibs": &d.read, "obs": &d.write, "count": &d.count, "skip": &d.skip,
		"iseek": &d.skip, "seek": &d.seek, "oseek": &d.seek, "cbs": new(int64)}
	if to, ok := numbers[name]; ok {
		n, inBytes, err := ddNumber(value)
		if err != nil || n == 0 && strings.HasSuffix(name, "bs") {
			return d.Die(1, "invalid number: '%s'", value)
		}
		*to = n
		switch {
		case !inBytes:
		case name == "count":
			d.countBytes = true
		case name == "skip" || name == "iseek":
			d.skipBytes = true
		case name == "seek" || name == "oseek":
			d.seekBytes = true
		}
		return nil
	}
	switch name {
	case "if":
		d.from = value
	case "of":
		d.to = value
	case "status":
		d.status = value
	case "conv":
		for _, word := range strings.Split(value, ",") {
			if !slices.Contains(ddConversions, word) {
				return d.Usage(1, "invalid conversion: '%s'", word)
			}
			d.convert[word] = true
		}
	case "iflag", "oflag":
		for _, word := range strings.Split(value, ",") {
			d.flag(word)
		}
	default:
		return d.Usage(1, "unrecognized operand '%s'", operand)
	}
	return nil
}

// flag is one of iflag= and oflag=. Those about how the system reads and writes say nothing here.
func (d *blocks) flag(word string) {
	switch word {
	case "fullblock":
		d.whole = true
	case "count_bytes":
		d.countBytes = true
	case "skip_bytes":
		d.skipBytes = true
	case "seek_bytes":
		d.seekBytes = true
	case "append":
		d.append = true
	}
}

// ddNumber reads a number with a suffix, or a product of such with an x between; B says that it is of bytes.
func ddNumber(text string) (n int64, inBytes bool, err error) {
	n = 1
	for _, factor := range strings.Split(text, "x") {
		if bare, ok := strings.CutSuffix(factor, "B"); ok && bare != "" && strings.Trim(bare, "0123456789") == "" {
			factor, inBytes = bare, true
		}
		if c, ok := strings.CutSuffix(factor, "c"); ok {
			factor = c
		}
		m, err := tool.Size(factor)
		if err != nil || factor == "" {
			return 0, false, tool.ErrNumber
		}
		if m > 0 && n > (1<<62)/m {
			return 0, false, tool.ErrNumber
		}
		n *= m
	}
	return n, inBytes, nil
}

func (d *blocks) run() error {
	start := d.Now()
	in, closeIn, err := d.source()
	if err != nil {
		return err
	}
	defer closeIn()
	closeOut, err := d.openSink()
	if err != nil {
		return err
	}
	err = d.copy(in)
	if closed := closeOut(); err == nil {
		err = closed
	}
	if err != nil {
		if tool.Ends(d.ctx, err) {
			return err
		}
		d.Fault("error writing '%s': %s", d.label(d.to, "standard output"), command.Reason(err))
	}
	d.report(d.Now().Sub(start))
	return nil
}

func (d *blocks) label(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// source opens the input at its first block.
func (d *blocks) source() (io.Reader, func(), error) {
	offset := d.skip * d.read
	if d.skipBytes {
		offset = d.skip
	}
	if d.from == "" {
		in := d.Standard(d.ctx)
		if _, err := io.CopyN(io.Discard, in, offset); err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		return in, func() {}, nil
	}
	f, err := d.FS.Open(d.ctx, d.from)
	if err != nil {
		if tool.Ends(d.ctx, err) {
			return nil, nil, err
		}
		return nil, nil, d.Die(1, "failed to open '%s': %s", d.from, command.Reason(err))
	}
	closing := func() { _ = f.Close() } // it was only read
	in := d.Count(d.ctx, f)
	if f.Device() == nil {
		_, err = f.Seek(offset, io.SeekStart)
	} else if _, err = io.CopyN(io.Discard, in, offset); errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		closing()
		return nil, nil, err
	}
	return in, closing, nil
}

// openSink opens the output at the block where it starts.
func (d *blocks) openSink() (closing func() error, err error) {
	if d.to == "" {
		d.sink = d.Out
		return d.Out.Flush, nil
	}
	flag := treepath.Write | treepath.Create
	switch {
	case d.convert["nocreat"]:
		flag = treepath.Write
	case d.convert["excl"]:
		flag |= treepath.Exclusive
	}
	if d.append {
		flag |= treepath.Append
	}
	f, err := d.FS.OpenFile(d.ctx, d.to, flag, 0o666)
	if err != nil {
		if tool.Ends(d.ctx, err) {
			return nil, err
		}
		return nil, d.Die(1, "failed to open '%s': %s", d.to, command.Reason(err))
	}
	offset := d.seek * d.write
	if d.seekBytes {
		offset = d.seek
	}
	d.sink = f
	if f.Device() != nil {
		return f.Close, nil
	}
	if !d.convert["notrunc"] && !d.append {
		err = f.Truncate(uint64(offset))
	}
	if err == nil && !d.append {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		var err error
		if d.convert["fsync"] || d.convert["fdatasync"] {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	}, nil
}

// copy reads block after block.
func (d *blocks) copy(in io.Reader) error {
	if err := d.Take(d.read + d.write); err != nil {
		return err
	}
	buf := make([]byte, d.read)
	left := d.count
	for left != 0 {
		size := d.read
		if d.countBytes && left > 0 {
			size = min(size, left)
		}
		n, err := d.block(in, buf[:size])
		if n > 0 {
			if int64(n) == d.read {
				d.in[0]++
			} else {
				d.in[1]++
			}
			if left > 0 {
				left--
				if d.countBytes {
					left -= int64(n) - 1
				}
			}
			block := buf[:n]
			if d.convert["sync"] && int64(n) < d.read {
				clear(buf[n:])
				block = buf
			}
			if err := d.put(d.converted(block)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			break
		}
		if err != nil {
			if tool.Ends(d.ctx, err) {
				return err
			}
			d.Fault("error reading '%s': %s", d.label(d.from, "standard input"), command.Reason(err))
			break
		}
	}
	return d.flush()
}

// block reads one block, which may be short, as one read from a pipe is, unless whole ones are wanted.
func (d *blocks) block(in io.Reader, buf []byte) (int, error) {
	if !d.whole {
		return in.Read(buf)
	}
	n, err := io.ReadFull(in, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (d *blocks) converted(block []byte) []byte {
	switch {
	case d.convert["ucase"]:
		block = bytes.ToUpper(block)
	case d.convert["lcase"]:
		block = bytes.ToLower(block)
	}
	if d.convert["swab"] {
		for i := 0; i+1 < len(block); i += 2 {
			block[i], block[i+1] = block[i+1], block[i]
		}
	}
	return block
}

// put writes a block that was read: as it is where blocks are of one size, which -bs asks for, else in those to be written.
func (d *blocks) put(block []byte) error {
	if d.both > 0 {
		return d.emit(block)
	}
	for len(block) > 0 {
		n := min(int(d.write)-len(d.pending), len(block))
		d.pending, block = append(d.pending, block[:n]...), block[n:]
		if int64(len(d.pending)) == d.write {
			if err := d.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *blocks) flush() error {
	if len(d.pending) == 0 {
		return nil
	}
	err := d.emit(d.pending)
	d.pending = d.pending[:0]
	return err
}

func (d *blocks) emit(block []byte) error {
	n, err := d.sink.Write(block)
	d.written += int64(n)
	if err != nil {
		return err
	}
	if int64(len(block)) == d.write {
		d.out[0]++
	} else {
		d.out[1]++
	}
	return nil
}

// report says on standard error what was done.
func (d *blocks) report(took time.Duration) {
	if d.status == "none" {
		return
	}
	fmt.Fprintf(d.Stderr, "%d+%d records in\n%d+%d records out\n", d.in[0], d.in[1], d.out[0], d.out[1])
	if d.status == "noxfer" {
		return
	}
	sizes := ""
	if d.written >= 1000 {
		sizes = " (" + decimal(float64(d.written), 1000, "B")
		if d.written >= 1024 {
			sizes += ", " + decimal(float64(d.written), 1024, "iB")
		}
		sizes += ")"
	}
	seconds := max(took.Seconds(), 1e-9)
	fmt.Fprintf(d.Stderr, "%d bytes%s copied, %s s, %s/s\n", d.written, sizes, strconv.FormatFloat(took.Seconds(), 'g', 6, 64),
		decimal(float64(d.written)/seconds, 1000, "B"))
}

// decimal writes an amount with the largest unit that leaves a digit before the point: 2.1 GB, 1.9 MiB, 849 MB.
func decimal(n, base float64, unit string) string {
	i := 0
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	if base == 1024 {
		prefixes[1] = "K"
	}
	for n >= base && i < len(prefixes)-1 {
		n /= base
		i++
	}
	if i == 0 {
		unit, n = "kB", n/1000
	}
	if n < 9.95 {
		return strconv.FormatFloat(n, 'f', 1, 64) + " " + prefixes[i] + unit
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + " " + prefixes[i] + unit
}
