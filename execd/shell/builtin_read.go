package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// readOptions are those of read.
type readOptions struct {
	array   string
	delim   byte
	count   int  // characters, with -n or -N
	exact   bool // -N
	prompt  string
	raw     bool
	timeout time.Duration
	timed   bool
	fd      int
	names   []string
}

func (sh *shell) builtinRead(args []string) int {
	o, status := sh.readArguments(args[1:])
	if status != 0 {
		return status
	}
	d := sh.fds.get(o.fd)
	if d == nil || d.read == nil {
		sh.warnf("read: %d: invalid file descriptor: Bad file descriptor", o.fd)
		return 1
	}
	ctx := sh.ctx
	if o.timed {
		if o.timeout == 0 {
			if d.ready == nil || d.ready() {
				return 0
			}
			return 1
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	line, err := sh.readText(ctx, d, o)
	if sh.ctx.Err() != nil {
		sh.stop()
	}
	timedOut := o.timed && ctx.Err() != nil
	var failed error
	if err != nil && !errors.Is(err, io.EOF) && !timedOut {
		failed = err
	}
	if failed != nil {
		sh.warnf("read: read error: %d: %s", o.fd, command.Reason(failed))
		return 1
	}
	if status := sh.assignRead(o, line); status != 0 {
		return status
	}
	switch {
	case timedOut:
		return 142
	case err != nil:
		return 1
	}
	return 0
}

func (sh *shell) readArguments(args []string) (o readOptions, status int) {
	o.delim, o.count = '\n', -1
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for j := 1; j < len(opt); j++ {
			c := opt[j]
			if strings.IndexByte("er", c) >= 0 || c == 's' {
				o.raw = o.raw || c == 'r'
				continue
			}
			if strings.IndexByte("adinNptu", c) < 0 {
				return o, sh.badOption("read", "-"+string(c))
			}
			value := opt[j+1:]
			if value == "" {
				if len(args) == 0 {
					sh.warnf("read: -%c: option requires an argument", c)
					sh.usage("read")
					return o, 2
				}
				value, args = args[0], args[1:]
			}
			if !sh.readOption(&o, c, value) {
				return o, 1
			}
			break
		}
	}
	o.names = args
	for _, n := range args {
		if _, ok := parseRef(n); !ok {
			sh.warnf("read: `%s': not a valid identifier", n)
			return o, 1
		}
	}
	return o, 0
}

func (sh *shell) readOption(o *readOptions, c byte, value string) bool {
	switch c {
	case 'a':
		o.array = value
	case 'd':
		o.delim = 0
		if value != "" {
			o.delim = value[0]
		}
	case 'p':
		o.prompt = value
	case 'n', 'N':
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			sh.warnf("read: %s: invalid number", value)
			return false
		}
		o.count, o.exact = n, c == 'N'
	case 't':
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || f < 0 || f > 1e9 {
			sh.warnf("read: %s: invalid timeout specification", value)
			return false
		}
		o.timed, o.timeout = true, time.Duration(f*float64(time.Second))
	case 'u':
		n, err := strconv.Atoi(value)
		if err != nil {
			sh.warnf("read: %s: invalid file descriptor specification", value)
			return false
		}
		o.fd = n
	}
	return true
}

// quotedMark stands before a character that a backslash has quoted. No NUL is ever read.
const quotedMark = 0

// readText reads what read is to split: up to the delimiter or a number of characters. With backslashes as quotes, a
// quoted character has a mark before it.
func (sh *shell) readText(ctx context.Context, d *description, o readOptions) (string, error) {
	var b strings.Builder
	r := byteReader{ctx: ctx, d: d}
	defer r.putBack()
	if o.count == 0 {
		return "", nil
	}
	for n := 0; ; {
		c, err := r.next()
		if err != nil {
			return b.String(), err
		}
		if c == '\\' && !o.raw {
			c, err = r.next()
			if err != nil {
				return b.String(), err
			}
			if c == '\n' {
				continue
			}
			if c != 0 {
				b.WriteByte(quotedMark)
				b.WriteByte(c)
			}
		} else {
			if c == o.delim && !o.exact {
				return b.String(), nil
			}
			if c == 0 {
				continue
			}
			b.WriteByte(c)
			for k := runeLength(c); k > 1; k-- { // a character is read whole
				if c, err = r.next(); err != nil {
					return b.String(), err
				}
				b.WriteByte(c)
			}
		}
		if b.Len()&0xffff == 0 {
			sh.room(b.Len())
		}
		if n++; n == o.count {
			return b.String(), nil
		}
	}
}

func runeLength(c byte) int {
	switch {
	case c >= 0xf0 && c < 0xf8:
		return 4
	case c >= 0xe0 && c < 0xf0:
		return 3
	case c >= 0xc2 && c < 0xe0:
		return 2
	}
	return 1
}

// byteReader reads byte by byte. From a file it takes more at once and puts back what it did not use, since the next
// command reads on from there; from a pipe it never takes more.
type byteReader struct {
	ctx context.Context
	d   *description
	buf []byte
	one [1]byte
	at  int
}

func (r *byteReader) next() (byte, error) {
	if r.at < len(r.buf) {
		r.at++
		return r.buf[r.at-1], nil
	}
	p := r.one[:]
	if r.d.seek != nil {
		p = make([]byte, 512)
	}
	for {
		n, err := r.d.read(r.ctx, p)
		if n > 0 {
			r.buf, r.at = p[:n], 1
			return p[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}

func (r *byteReader) putBack() {
	if n := len(r.buf) - r.at; n > 0 && r.d.seek != nil {
		_, _ = r.d.seek(int64(-n), io.SeekCurrent)
	}
	r.buf, r.at = nil, 0
}

// readLine reads one line as it is; an error when nothing was left.
func (sh *shell) readLine(fd int, delim byte) (string, error) {
	d := sh.fds.get(fd)
	if d == nil || d.read == nil {
		return "", fmt.Errorf("%d: invalid file descriptor", fd)
	}
	r := byteReader{ctx: sh.ctx, d: d}
	defer r.putBack()
	var b strings.Builder
	for {
		c, err := r.next()
		if err != nil {
			if b.Len() > 0 && errors.Is(err, io.EOF) {
				return b.String(), nil
			}
			return "", err
		}
		if c == delim {
			return b.String(), nil
		}
		b.WriteByte(c)
	}
}

// assignRead splits what was read and assigns it.
func (sh *shell) assignRead(o readOptions, line string) int {
	assign := func(name, value string) int {
		if err := sh.assignText(name, value); err != nil {
			sh.warnf("read: %v", err)
			return 1
		}
		return 0
	}
	switch {
	case o.array != "":
		if !isName(o.array) {
			sh.warnf("read: `%s': not a valid identifier", o.array)
			return 1
		}
		if v := sh.lookup(o.array); v != nil && v.attrs&attrAssoc != 0 {
			sh.warnf("read: %s: cannot convert associative to indexed array", o.array)
			return 1
		}
		if err := sh.setList(o.array, sh.readFields(line, 0)); err != nil {
			sh.warnf("read: %v", err)
			return 1
		}
		return 0
	case len(o.names) == 0:
		return assign("REPLY", unquoteRead(line))
	case o.exact:
		status := assign(o.names[0], unquoteRead(line))
		for _, n := range o.names[1:] {
			assign(n, "")
		}
		return status
	}
	fields := sh.readFields(line, len(o.names))
	for i, name := range o.names {
		value := ""
		if i < len(fields) {
			value = fields[i]
		}
		if status := assign(name, value); status != 0 {
			return status
		}
	}
	return 0
}

func unquoteRead(s string) string { return strings.ReplaceAll(s, string(rune(quotedMark)), "") }

// readFields splits a line by $IFS into at most max fields (0 for any number); the last takes the rest.
func (sh *shell) readFields(line string, max int) []string {
	white, other := sh.ifs()
	is := func(set string, i int) bool {
		r, _ := utf8.DecodeRuneInString(line[i:])
		return strings.ContainsRune(set, r)
	}
	width := func(i int) int {
		_, n := utf8.DecodeRuneInString(line[i:])
		return n
	}
	skip := func(i int) int {
		for i < len(line) && is(white, i) {
			i += width(i)
		}
		return i
	}
	var out []string
	i := skip(0)
	for i < len(line) {
		if max > 0 && len(out) == max-1 {
			return append(out, sh.lastReadField(line[i:], white, other))
		}
		from := i
		for i < len(line) && !is(white, i) && !is(other, i) {
			if line[i] == quotedMark {
				i++
			}
			i += width(i)
		}
		out = append(out, unquoteRead(line[from:i]))
		i = skip(i)
		if i < len(line) && is(other, i) {
			i = skip(i + width(i))
		}
	}
	return out
}

// lastReadField is what is left for the last name: without white space at its end, and without one separator if that is
// the only one.
func (sh *shell) lastReadField(rest, white, other string) string {
	end := len(rest)
	trim := func() {
		for end > 0 {
			r, n := utf8.DecodeLastRuneInString(rest[:end])
			if !strings.ContainsRune(white, r) || backslashed(rest, end-n) {
				return
			}
			end -= n
		}
	}
	trim()
	if end > 0 {
		r, n := utf8.DecodeLastRuneInString(rest[:end])
		if strings.ContainsRune(other, r) && !backslashed(rest, end-n) && !containsSeparator(rest[:end-n], white, other) {
			end -= n
			trim()
		}
	}
	return unquoteRead(rest[:end])
}

func containsSeparator(s, white, other string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == quotedMark {
			i++
			continue
		}
		if strings.IndexByte(other, s[i]) >= 0 || strings.IndexByte(white, s[i]) >= 0 {
			return true
		}
	}
	return false
}

func backslashed(s string, i int) bool {
	return i > 0 && s[i-1] == quotedMark
}

// mapfileOptions are those of mapfile.
type mapfileOptions struct {
	delim       byte
	count, skip int
	origin      int64
	trim, keep  bool
	fd          int
	callback    string
	quantum     int
	name        string
}

func (sh *shell) builtinMapfile(args []string) int {
	o := mapfileOptions{delim: '\n', quantum: 5000, name: "MAPFILE"}
	name := args[0]
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		if opt[1] == 't' && len(opt) == 2 {
			o.trim = true
			continue
		}
		if opt[1] == 't' {
			o.trim = true
			opt = "-" + opt[2:]
		}
		if strings.IndexByte("dnOsuCc", opt[1]) < 0 {
			return sh.badOption(name, opt)
		}
		value := opt[2:]
		if value == "" {
			if len(args) == 0 {
				sh.warnf("%s: %s: option requires an argument", name, opt)
				return 2
			}
			value, args = args[0], args[1:]
		}
		n, err := strconv.Atoi(value)
		low, what := 0, "invalid number"
		switch opt[1] {
		case 'd':
			n, o.delim, err = 0, 0, nil
			if value != "" {
				o.delim = value[0]
			}
		case 'n':
			o.count, what = n, "invalid line count"
		case 'O':
			o.origin, o.keep, what = int64(n), true, "invalid array origin"
		case 's':
			o.skip, what = n, "invalid line count"
		case 'u':
			o.fd = n
		case 'C':
			n, o.callback, err = 0, value, nil
		case 'c':
			o.quantum, low, what = n, 1, "invalid callback quantum"
		}
		if err != nil || n < low {
			sh.warnf("%s: %s: %s", name, value, what)
			return 1
		}
	}
	if len(args) > 0 {
		o.name = args[0]
	}
	if !isName(o.name) {
		sh.warnf("%s: `%s': not a valid identifier", name, o.name)
		return 1
	}
	return sh.mapfile(name, o)
}

func (sh *shell) mapfile(name string, o mapfileOptions) int {
	d := sh.fds.get(o.fd)
	if d == nil || d.read == nil {
		sh.warnf("%s: %d: invalid file descriptor: Bad file descriptor", name, o.fd)
		return 1
	}
	if v, found := sh.vars.Get(o.name); found && v.attrs&attrAssoc != 0 {
		sh.warnf("%s: %s: not an indexed array", name, o.name)
		return 1
	}
	if !o.keep {
		if err := sh.setList(o.name, nil); err != nil {
			sh.warnf("%s: %v", name, err)
			return 1
		}
	}
	r := byteReader{ctx: sh.ctx, d: d}
	defer r.putBack()
	index := o.origin
	for lines := 0; o.count == 0 || lines < o.count+o.skip; lines++ {
		line, err := r.line(o.delim)
		if line == "" && err != nil {
			break
		}
		if lines < o.skip {
			continue
		}
		if i := strings.IndexByte(line, 0); i >= 0 && o.delim != 0 {
			line = line[:i]
		}
		if o.trim {
			line = strings.TrimSuffix(line, string([]byte{o.delim}))
		} else if o.delim == 0 {
			line = strings.TrimSuffix(line, "\x00")
		}
		if n := lines - o.skip + 1; o.callback != "" && o.quantum > 0 && n%o.quantum == 0 {
			sh.runSource(fmt.Sprintf("%s %d %s", o.callback, index, quoteTrace(line)), 0)
		}
		sub := strconv.FormatInt(index, 10)
		if err := sh.assign(ref{o.name, sub, true}, line, false); err != nil {
			sh.warnf("%s: %v", name, err)
			return 1
		}
		index++
		if err != nil {
			break
		}
	}
	return 0
}

// line reads up to the delimiter, which is part of the line.
func (r *byteReader) line(delim byte) (string, error) {
	var b strings.Builder
	for {
		c, err := r.next()
		if err != nil {
			return b.String(), err
		}
		b.WriteByte(c)
		if c == delim {
			return b.String(), nil
		}
	}
}
