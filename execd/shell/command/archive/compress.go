package archive

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// zstdWindow bounds the window of what is decompressed, which is memory.
const zstdWindow = 64 << 20

// format is a way to compress.
type format struct {
	name   string
	suffix string
	magic  string
	says   *phrases

	// take counts memory against the script's bound.
	reader func(r io.Reader, take func(int64) error) (io.ReadCloser, error)
	writer func(w io.Writer, level int, take func(int64) error) (io.WriteCloser, error) // nil for what only decompresses
}

// phrases are a compressor's words.
type phrases struct {
	exists, suffixed, directory, unknown string // of a file; suffixed of its suffix too
	foreign, truncated, corrupt          string // of a stream
	stdin                                string // the name of standard input
}

var gzipPhrases = phrases{
	exists:    "%s already exists;\tnot overwritten",
	suffixed:  "%s already has %s suffix -- unchanged",
	directory: "%s is a directory -- ignored",
	unknown:   "%s: unknown suffix -- ignored",
	foreign:   "not in gzip format",
	truncated: "unexpected end of file",
	corrupt:   "invalid compressed data--crc error",
	stdin:     "stdin",
}

var (
	gzipFormat = &format{
		name: "gzip", suffix: ".gz", magic: "\x1f\x8b", says: &gzipPhrases,
		reader: func(r io.Reader, _ func(int64) error) (io.ReadCloser, error) { return gzip.NewReader(r) },
		writer: func(w io.Writer, level int, _ func(int64) error) (io.WriteCloser, error) {
			if level == 0 {
				level = 6
			}
			return gzip.NewWriterLevel(w, min(level, 9))
		},
	}
	zstdFormat = &format{
		name: "zstd", suffix: ".zst", magic: "\x28\xb5\x2f\xfd", says: &gzipPhrases,
		reader: func(r io.Reader, _ func(int64) error) (io.ReadCloser, error) {
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		},
		writer: func(w io.Writer, level int, _ func(int64) error) (io.WriteCloser, error) {
			if level == 0 {
				level = 3
			}
			return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
		},
	}
	bzip2Format = &format{
		name: "bzip2", suffix: ".bz2", magic: "BZh", says: &gzipPhrases,
		reader: func(r io.Reader, _ func(int64) error) (io.ReadCloser, error) {
			return io.NopCloser(bzip2.NewReader(r)), nil
		},
	}
)

// codec is a command of a format.
type codec struct {
	*format
	expand bool // decompresses unless told otherwise
	stdout bool
}

var codecs = map[string]codec{
	"gzip": {gzipFormat, false, false}, "gunzip": {gzipFormat, true, false}, "zcat": {gzipFormat, true, true},
	"zstd": {zstdFormat, false, false}, "unzstd": {zstdFormat, true, false}, "zstdcat": {zstdFormat, true, true},
	"bunzip2": {bzip2Format, true, false}, "bzcat": {bzip2Format, true, true},
	"xz": {xzFormat, false, false}, "unxz": {xzFormat, true, false}, "xzcat": {xzFormat, true, true},
}

var compressOptions = getopt.New("cdefhkLlNno:qrS:tT:vzV0123456789", "stdout=c", "to-stdout=c", "decompress=d", "uncompress=d",
	"force=f", "keep=k", "list=l", "no-name=n", "name=N", "quiet=q", "recursive=r", "suffix:=S", "test=t", "verbose=v",
	"fast=1", "best=9", "rm", "threads:=T", "compress=z", "output:=o", "ultra", "long::", "no-progress", "extreme=e", "rsyncable")

// squeezer is what one run of a compressor does.
type squeezer struct {
	*tool.Call
	ctx context.Context
	codec
	force, keep, list, test, verbose, quiet, recursive bool
	level                                              int
	suffix, output                                     string
}

func (c codec) body(ctx context.Context, call *tool.Call) error {
	options, names, err := call.Options(compressOptions, 1)
	if err != nil {
		return err
	}
	if c.format == gzipFormat {
		call.Args = append([]string{"gzip"}, call.Args[1:]...) // gunzip and zcat are gzip, and say so
	}
	s := &squeezer{Call: call, ctx: ctx, codec: c, suffix: c.suffix, keep: c.format == zstdFormat}
	for _, o := range options {
		if o.Name == "0" && s.format == gzipFormat {
			call.Say("invalid option -- '0'")
			fmt.Fprintln(call.Stderr, "Try `gzip --help' for more information.")
			return tool.Exit(1)
		}
		s.set(o)
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	if s.writer == nil && !s.expand {
		return call.Die(1, "compression to %s is not supported", s.name)
	}
	if s.list {
		fmt.Fprintln(call.Out, "         compressed        uncompressed  ratio uncompressed_name")
	}
	for _, name := range names {
		if err := s.operand(name); err != nil {
			if tool.Ends(ctx, err) {
				return err
			}
			if (errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF)) && s.says == &gzipPhrases {
				fmt.Fprintln(call.Stderr)
			}
			call.Fault("%s: %s", s.about(name, err), s.reason(err))
		}
	}
	return nil
}

// about is the name that an error is about: of what is not there, the one that was looked for last.
func (s *squeezer) about(name string, err error) string {
	switch {
	case name == "-":
		return s.says.stdin
	case errors.Is(err, vfs.ErrNotExist) && s.expand && !strings.HasSuffix(name, s.suffix) && s.format == gzipFormat:
		return name + s.suffix
	}
	return name
}

// reason is command.Reason in the words of the format's own tool.
func (f *format) reason(err error) string {
	text := command.Reason(err)
	switch {
	case errors.Is(err, gzip.ErrHeader):
		return f.says.foreign
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return f.says.truncated
	case errors.Is(err, errDictionary):
		return "Memory usage limit reached"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, errXZ):
		return f.says.corrupt
	}
	return text
}

func (s *squeezer) set(o getopt.Option) {
	switch o.Name {
	case "c":
		s.stdout = true
	case "d":
		s.expand = true
	case "z":
		s.expand = false
	case "f":
		s.force = true
	case "k":
		s.keep = true
	case "rm":
		s.keep = false
	case "l":
		s.list, s.expand = true, true
	case "t":
		s.test, s.expand = true, true
	case "v":
		s.verbose = true
	case "q":
		s.quiet = true
	case "r":
		s.recursive = true
	case "S":
		s.suffix = o.Value
	case "o":
		s.output = o.Value
	default:
		if len(o.Name) == 1 && o.Name[0] >= '0' && o.Name[0] <= '9' {
			s.level = s.level*10 + int(o.Name[0]-'0')
		}
	}
}

func (s *squeezer) operand(name string) error {
	switch {
	case name == "-" && s.test:
		return s.stream(s.Standard(s.ctx), io.Discard)
	case name == "-":
		return s.stream(s.Standard(s.ctx), s.Out)
	}
	a, err := s.FS.Stat(s.ctx, name)
	if errors.Is(err, vfs.ErrNotExist) && s.expand && !strings.HasSuffix(name, s.suffix) {
		if b, suffixErr := s.FS.Stat(s.ctx, name+s.suffix); suffixErr == nil {
			name, a, err = name+s.suffix, b, nil
		}
	}
	switch {
	case err != nil:
		return err
	case a.Type == vfs.TypeDir:
		return s.directory(name)
	}
	in, err := s.Open(s.ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	switch {
	case s.list:
		return s.show(name, in, a)
	case s.test:
		return s.stream(in, io.Discard)
	case s.stdout:
		return s.stream(in, s.Out)
	}
	return s.replace(name, in, a)
}

func (s *squeezer) directory(name string) error {
	if !s.recursive {
		s.Say(s.says.directory, name)
		s.Status = max(s.Status, 2)
		return nil
	}
	entries, err := s.FS.ReadDir(s.ctx, name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.operand(strings.TrimRight(name, "/") + "/" + e.Name); err != nil {
			return err
		}
	}
	return nil
}

// stream compresses or decompresses one stream into another.
func (s *squeezer) stream(in io.Reader, out io.Writer) error {
	if s.expand {
		return s.inflate(in, out)
	}
	w, err := s.writer(out, s.level, s.Take)
	if err != nil {
		return err
	}
	if _, err := s.pack(w, in); err != nil {
		if s.format != xzFormat { // which holds nothing but memory, and would go on packing for seconds
			_ = w.Close()
		}
		return err
	}
	return w.Close()
}

// pack copies into a compressor, in pieces that do not keep it long: the context is looked at between them.
func (f *format) pack(w io.Writer, in io.Reader) (int64, error) {
	if f != xzFormat {
		return io.Copy(w, in)
	}
	return io.CopyBuffer(onlyWriter{w}, onlyReader{in}, make([]byte, 4<<10))
}

// onlyReader hides WriteTo, so that CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

func (s *squeezer) inflate(in io.Reader, out io.Writer) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if head, _ := buffered.Peek(len(s.magic)); s.stdout && s.force && !bytes.Equal(head, []byte(s.magic)) {
		_, err := io.Copy(out, buffered)
		return err
	}
	if head, _ := buffered.Peek(len(s.magic)); len(head) > 0 && !bytes.Equal(head, []byte(s.magic)) {
		return gzip.ErrHeader
	}
	r, err := s.reader(buffered, s.Take)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(out, s.Count(s.ctx, r))
	return err
}

func (s *squeezer) show(name string, in io.Reader, a vfs.Attr) error {
	var n counter
	if err := s.inflate(in, &n); err != nil {
		return err
	}
	ratio := 0.0
	if n > 0 {
		ratio = 100 * (1 - float64(a.Size)/float64(n))
	}
	_, err := fmt.Fprintf(s.Out, "%19d %19d %5.1f%% %s\n", a.Size, n, ratio, strings.TrimSuffix(name, s.suffix))
	return err
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// target returns the name of what is made of a file.
func (s *squeezer) target(name string) (string, bool) {
	if s.output != "" {
		return s.output, true
	}
	if !s.expand {
		if strings.HasSuffix(name, s.suffix) && !s.force {
			s.Say(s.says.suffixed, name, s.suffix)
			if s.says == &xzPhrases {
				s.Status = max(s.Status, 2)
			}
			return "", false
		}
		return name + s.suffix, true
	}
	for from, to := range map[string]string{s.suffix: "", ".tgz": ".tar", ".tzst": ".tar", ".tbz2": ".tar", ".txz": ".tar"} {
		if base, ok := strings.CutSuffix(name, from); ok && base != "" {
			return base + to, true
		}
	}
	s.Say(s.says.unknown, name)
	s.Status = max(s.Status, 2)
	return "", false
}

// replace makes the other file, with the first one's mode and times, and removes the first.
func (s *squeezer) replace(name string, in io.Reader, a vfs.Attr) error {
	to, ok := s.target(name)
	if !ok {
		return nil
	}
	if _, err := s.FS.Lstat(s.ctx, to); err == nil && !s.force {
		s.Say(s.says.exists, to)
		if s.says == &xzPhrases {
			s.Status = max(s.Status, 1)
		} else {
			s.Status = max(s.Status, 2)
		}
		return nil
	}
	f, err := s.FS.OpenFile(s.ctx, to, treepath.Write|treepath.Create|treepath.Truncate, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = s.stream(in, w)
	err = errors.Join(err, w.Flush(), f.Close())
	if err == nil {
		err = errors.Join(s.FS.Chmod(s.ctx, to, a.Mode), s.FS.Chtimes(s.ctx, to, &a.Atime, &a.Mtime, true))
	}
	if err != nil {
		_ = s.FS.Remove(context.WithoutCancel(s.ctx), to)
		return err
	}
	if !s.keep {
		return s.FS.Remove(s.ctx, name)
	}
	return nil
}
