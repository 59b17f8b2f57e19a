package awk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// reader reads records as RS says.
type reader struct {
	in    *interp
	r     *bufio.Reader
	close io.Closer
	buf   []byte // of a regular expression as RS
	eof   bool
}

func (in *interp) newReader(r io.Reader, c io.Closer) *reader {
	return &reader{in: in, r: bufio.NewReaderSize(r, 64<<10), close: c}
}

// read returns the next record, and what ended it.
func (r *reader) read() (text, end string, ok bool, err error) {
	rs := r.in.vars[varRS].s
	switch {
	case rs == "":
		return r.paragraph()
	case len(rs) == 1:
		return r.until(rs[0])
	}
	return r.regex(rs)
}

func (r *reader) until(delim byte) (text, end string, ok bool, err error) {
	var long []byte
	for {
		part, err := r.r.ReadSlice(delim)
		switch {
		case err == nil && long == nil:
			return string(part[:len(part)-1]), string(delim), true, nil
		case err == nil:
			long = append(long, part...)
			return string(long[:len(long)-1]), string(delim), true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
			if err := r.in.Take(int64(len(part))); err != nil {
				return "", "", false, err
			}
		case errors.Is(err, io.EOF):
			long = append(long, part...)
			return string(long), "", len(long) > 0, nil
		default:
			return "", "", false, err
		}
	}
}

// paragraph reads up to an empty line; empty lines before and after it belong to no record.
func (r *reader) paragraph() (text, end string, ok bool, err error) {
	var lines []string
	for {
		line, _, more, err := r.until('\n')
		if err != nil {
			return "", "", false, err
		}
		if line == "" && (more || len(lines) == 0) || !more {
			if len(lines) > 0 {
				return strings.Join(lines, "\n"), "\n\n", true, nil
			}
			if !more {
				return "", "", false, nil
			}
			continue
		}
		lines = append(lines, line)
		if err := r.in.tick(); err != nil {
			return "", "", false, err
		}
	}
}

// regex reads up to a match, with enough of what follows at hand that the match cannot become longer.
func (r *reader) regex(source string) (text, end string, ok bool, err error) {
	re, err := r.in.compile(source)
	if err != nil {
		return "", "", false, err
	}
	block := make([]byte, 64<<10)
	for {
		loc, err := re.Find(r.buf)
		if err != nil {
			return "", "", false, err
		}
		if loc != nil && loc[1] > loc[0] && (loc[1] < len(r.buf) || r.eof) {
			text, end = string(r.buf[:loc[0]]), string(r.buf[loc[0]:loc[1]])
			r.buf = r.buf[loc[1]:]
			return text, end, true, nil
		}
		if r.eof {
			text = string(r.buf)
			r.buf = nil
			if text == "" {
				return "", "", false, nil
			}
			return text, "", true, nil
		}
		n, err := r.r.Read(block)
		r.buf = append(r.buf, block[:n]...)
		if r.eof = errors.Is(err, io.EOF); err != nil && !r.eof {
			return "", "", false, err
		}
		if err := r.in.Take(int64(n)); err != nil {
			return "", "", false, err
		}
	}
}

// source is the main input: the files that ARGV names, one after another.
type source struct {
	*reader
	arg   int
	files int // opened so far
}

// nextRecord reads the next record of the main input.
func (in *interp) nextRecord() (text string, ok bool, err error) {
	for {
		if in.input.reader == nil {
			if more, err := in.nextFile(); err != nil || !more {
				return "", false, err
			}
		}
		text, end, ok, err := in.input.read()
		if err != nil {
			if tool.IsDir(err) {
				in.Say("warning: command line argument `%s' is a directory: skipped", in.vars[varFILENAME].s)
				ok, err = false, nil
			} else {
				return "", false, err
			}
		}
		if ok {
			in.vars[varRT] = str(end)
			in.vars[varNR] = num(in.vars[varNR].num() + 1)
			in.vars[varFNR] = num(in.vars[varFNR].num() + 1)
			return text, true, nil
		}
		in.skipFile()
	}
}

func (in *interp) skipFile() {
	if in.input.reader != nil {
		if in.input.close != nil {
			_ = in.input.close.Close()
		}
		in.input.reader = nil
	}
}

// nextFile opens the next argument that is a file; assignments among them are done on the way.
func (in *interp) nextFile() (bool, error) {
	argv := in.globals[in.prog.globals["ARGV"].index].array
	for {
		in.input.arg++
		argc := int(in.globals[in.prog.globals["ARGC"].index].v.num())
		if in.input.arg >= argc {
			if in.input.files > 0 {
				return false, nil
			}
			in.input.files++
			in.input.reader = in.newReader(in.Standard(in.ctx), nil)
			return true, nil
		}
		c, ok := argv.values[spell(float64(in.input.arg), "%.6g")]
		if !ok {
			continue
		}
		name := in.text(c.v)
		if name == "" {
			continue
		}
		if v, text, ok := strings.Cut(name, "="); ok && isName(v) {
			if err := in.setVariable(v, text); err != nil {
				return false, err
			}
			continue
		}
		opened, err := in.openInput(name)
		in.input.files++
		if err != nil {
			if tool.Ends(in.ctx, err) {
				return false, err
			}
			return false, fatal("cannot open file `%s' for reading: %s", name, command.Reason(err))
		}
		in.vars[varFILENAME], in.vars[varFNR] = str(name), num(0)
		in.input.reader = opened
		return true, nil
	}
}

func (in *interp) openInput(name string) (*reader, error) {
	if name == "/dev/stdin" {
		name = "-"
	}
	f, err := in.Open(in.ctx, name)
	if err != nil {
		return nil, err
	}
	return in.newReader(f, f), nil
}

func isName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

// stream is a file or command that the program reads or writes, by the name it uses for it.
type stream struct {
	name string
	read *reader
	w    *bufio.Writer
	file io.Closer
	pipe *bytes.Buffer // what a command will be given
}

// maxStreams bounds what a program has open.
const maxStreams = 256

func (in *interp) addStream(kind string, s *stream) error {
	if len(in.files) >= maxStreams {
		return fatal("too many open files")
	}
	in.files[kind+s.name] = s
	in.order = append(in.order, s)
	return nil
}

// writer returns where print with a redirection writes.
func (in *interp) writer(redir, name string) (io.Writer, error) {
	switch {
	case redir == "|":
	case name == "/dev/stdout" || name == "-":
		return in.Out, nil
	case name == "/dev/stderr":
		return in.Stderr, in.Out.Flush()
	}
	kind := "w"
	if redir == "|" {
		kind = "|"
	}
	if s, ok := in.files[kind+name]; ok {
		return s.w, nil
	}
	s := &stream{name: name}
	if redir == "|" {
		s.pipe = &bytes.Buffer{}
		s.w = bufio.NewWriter(&counted{s.pipe, in})
		return s.w, in.addStream(kind, s)
	}
	flag := treepath.Write | treepath.Create | treepath.Truncate
	if redir == ">>" {
		flag = treepath.Write | treepath.Create | treepath.Append
	}
	f, err := in.FS.OpenFile(in.ctx, name, flag, 0o666)
	if err != nil {
		return nil, fatal("cannot redirect to `%s': %s", name, command.Reason(err))
	}
	s.w, s.file = bufio.NewWriterSize(f, 32<<10), f
	return s.w, in.addStream(kind, s)
}

// counted counts the memory of what is kept for a command.
type counted struct {
	b  *bytes.Buffer
	in *interp
}

func (c *counted) Write(p []byte) (int, error) {
	if err := c.in.Take(int64(len(p))); err != nil {
		return 0, err
	}
	return c.b.Write(p)
}

// start runs a command of the shell.
func (in *interp) start(source string, stdin io.Reader, stdout io.Writer) (int, error) {
	if err := in.flush(); err != nil {
		return 0, err
	}
	p := *in.Process
	p.Args, p.Stdin, p.Stdout = []string{"sh", "-c", source}, stdin, stdout
	status := in.Run(in.ctx, &p)
	return status, in.ctx.Err()
}

// flush writes what is buffered for files and standard output.
func (in *interp) flush() error {
	err := in.Out.Flush()
	for _, s := range in.order {
		if s.w != nil && s.pipe == nil {
			err = errors.Join(err, s.w.Flush())
		}
	}
	return err
}

// closeStream ends a stream: a command that was written to runs now. It returns its status.
func (in *interp) closeStream(s *stream) (int, error) {
	for i, o := range in.order {
		if o == s {
			in.order = append(in.order[:i], in.order[i+1:]...)
			break
		}
	}
	if s.read != nil && s.read.close != nil {
		return 0, s.read.close.Close()
	}
	if s.w == nil {
		return 0, nil
	}
	if err := s.w.Flush(); err != nil {
		return 0, err
	}
	if s.pipe != nil {
		return in.start(s.name, s.pipe, in.Stdout)
	}
	return 0, s.file.Close()
}

func (in *interp) closeAll() error {
	var first error
	for len(in.order) > 0 {
		if _, err := in.closeStream(in.order[0]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// getline reads a record from wherever it is told to.
func (in *interp) getline(x getlineExpr) (value, error) {
	if err := in.tick(); err != nil {
		return value{}, err
	}
	if x.kind == 0 {
		text, ok, err := in.nextRecord()
		if err != nil || !ok {
			return num(0), err
		}
		return num(1), in.deliver(x.to, text)
	}
	v, err := in.eval(x.from)
	if err != nil {
		return v, err
	}
	r, err := in.readStream(x.kind, in.text(v))
	if err != nil {
		if tool.Ends(in.ctx, err) {
			return value{}, err
		}
		return num(-1), nil
	}
	text, end, ok, err := r.read()
	if err != nil {
		if tool.Ends(in.ctx, err) {
			return value{}, err
		}
		return num(-1), nil
	}
	if !ok {
		return num(0), nil
	}
	in.vars[varRT] = str(end)
	if x.kind == '|' {
		in.vars[varNR] = num(in.vars[varNR].num() + 1)
	}
	return num(1), in.deliver(x.to, text)
}

// deliver puts a record into a variable, or makes it $0.
func (in *interp) deliver(to expr, text string) error {
	if to != nil {
		return in.assign(to, input(text))
	}
	in.setRecord(text)
	in.split()
	return nil
}

// readStream returns the reader of a file or a command's output, opened when it is first used.
func (in *interp) readStream(kind byte, name string) (*reader, error) {
	key := string(kind) + "r"
	if s, ok := in.files[key+name]; ok {
		return s.read, nil
	}
	s := &stream{name: name}
	if kind == '<' {
		r, err := in.openInput(name)
		if err != nil {
			return nil, err
		}
		s.read = r
		return r, in.addStream(key, s)
	}
	var out bytes.Buffer
	if _, err := in.start(name, in.Stdin, &counted{&out, in}); err != nil {
		return nil, err
	}
	s.read = in.newReader(&out, nil)
	return s.read, in.addStream(key, s)
}
