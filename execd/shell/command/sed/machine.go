package sed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// machine runs a program.
type machine struct {
	*tool.Call
	ctx     context.Context
	program *program
	in      *input
	out     *sink
	silent  bool
	flush   bool
	width   int // of l's lines
	end     byte

	space   []byte // the pattern space
	whole   bool   // its line had a newline
	hold    []byte
	queue   []queued // what a, r and R put after the line
	changed bool     // an s has succeeded since the last line or t
	last    *pattern
	readers map[string]*tool.Lines // of R
	buf     []byte
	charged int64
}

// queued is something to be written after the present line.
type queued struct {
	text []byte
	file string
	line bool
}

// errQuit ends the run: q and Q.
var errQuit = errors.New("quit")

// run runs the program over all input.
func (m *machine) run() error {
	for {
		ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		for again := true; again; {
			if again, err = m.cycle(); err != nil {
				return err
			}
		}
	}
}

// next reads the next line into the pattern space.
func (m *machine) next() (bool, error) {
	line, ok, err := m.in.next()
	if err != nil || !ok {
		return false, err
	}
	m.space = append(m.space[:0], line...)
	m.whole = m.in.whole
	return true, nil
}

// cycle runs the commands once; again says that they are to run again without another line (D).
func (m *machine) cycle() (again bool, err error) {
	err = m.execute()
	again = errors.Is(err, errAgain)
	switch {
	case again, errors.Is(err, errDelete):
		err = m.flushQueue()
	case err == nil:
		err = m.endCycle()
	case errors.Is(err, errQuit):
		if qErr := m.flushQueue(); qErr != nil {
			err = qErr
		}
	}
	return again, err
}

var (
	errDelete = errors.New("next cycle without printing")
	errAgain  = errors.New("next cycle without reading")
)

func (m *machine) endCycle() error {
	if !m.silent {
		if err := m.out.line(m.space, m.whole); err != nil {
			return err
		}
	}
	return m.flushQueue()
}

func (m *machine) flushQueue() error {
	for _, q := range m.queue {
		if err := m.writeQueued(q); err != nil {
			return err
		}
	}
	m.queue = m.queue[:0]
	if m.flush {
		return m.out.w.Flush()
	}
	return nil
}

func (m *machine) writeQueued(q queued) error {
	if q.file == "" {
		if q.line {
			return m.out.line(q.text, true)
		}
		return m.out.raw(q.text)
	}
	in, err := m.Open(m.ctx, m.standard(q.file))
	if err != nil {
		if tool.Ends(m.ctx, err) {
			return err
		}
		return nil // a file that cannot be read is as if it were empty
	}
	defer in.Close()
	m.out.settle()
	_, err = io.Copy(m.out.w, in)
	if tool.IsDir(err) {
		return nil
	}
	return err
}

func (m *machine) standard(name string) string {
	if name == "/dev/stdin" {
		return "-"
	}
	return name
}

// execute runs the commands on the pattern space.
func (m *machine) execute() error {
	steps := 0
	for pc := 0; pc < len(m.program.commands); {
		in := m.program.commands[pc]
		if steps++; steps%256 == 0 {
			if err := m.Step(m.ctx, 16); err != nil {
				return err
			}
		}
		selected, err := m.selects(in)
		if err != nil {
			return err
		}
		if !selected {
			if pc++; in.name == '{' {
				pc = in.jump
			}
			continue
		}
		jump, err := m.do(in)
		if err != nil {
			return err
		}
		if pc++; jump >= 0 {
			pc = jump
		}
	}
	return nil
}

// do runs one command; jump is where to go on, or -1.
func (m *machine) do(in *instruction) (jump int, err error) {
	jump = -1
	switch in.name {
	case '{':
	case '=':
		err = m.out.raw(append(strconv.AppendInt(nil, int64(m.in.line), 10), '\n'))
	case 'a':
		m.queue = append(m.queue, queued{text: in.text})
	case 'b':
		jump = in.jump
	case 'c':
		return -1, m.change(in)
	case 'd':
		err = errDelete
	case 'D':
		i := bytes.IndexByte(m.space, '\n')
		if i < 0 {
			return -1, errDelete
		}
		m.space = append(m.space[:0], m.space[i+1:]...)
		err = errAgain
	case 'F':
		err = m.out.raw([]byte(m.in.name() + "\n"))
	case 'g':
		m.space = append(m.space[:0], m.hold...)
	case 'G':
		m.space = append(append(m.space, '\n'), m.hold...)
		err = m.charge()
	case 'h':
		m.hold = append(m.hold[:0], m.space...)
	case 'H':
		m.hold = append(append(m.hold, '\n'), m.space...)
		err = m.charge()
	case 'i':
		err = m.out.raw(in.text)
	case 'l':
		err = m.list(in.number)
	case 'n':
		err = m.nextLine()
	case 'N':
		err = m.appendLine()
	case 'p':
		err = m.out.line(m.space, true)
	case 'P':
		line, _, _ := bytes.Cut(m.space, []byte{'\n'})
		err = m.out.line(line, true)
	case 'q', 'Q':
		err = m.quit(in)
	case 'r':
		m.queue = append(m.queue, queued{file: string(in.text)})
	case 'R':
		err = m.readLine(string(in.text))
	case 's':
		err = m.substitute(in.sub)
	case 't':
		if m.changed {
			m.changed, jump = false, in.jump
		}
	case 'T':
		if !m.changed {
			jump = in.jump
		}
		m.changed = false
	case 'w':
		err = in.sink.line(m.space, true)
	case 'W':
		line, _, _ := bytes.Cut(m.space, []byte{'\n'})
		err = in.sink.line(line, true)
	case 'x':
		m.space, m.hold = m.hold, m.space
	case 'y':
		m.transliterate(in.table)
	case 'z':
		m.space = m.space[:0]
	}
	return jump, err
}

// charge counts the memory of spaces that have grown.
func (m *machine) charge() error {
	if grown := int64(cap(m.space)+cap(m.hold)) - m.charged; grown > 1<<16 {
		m.charged += grown
		return m.Take(grown)
	}
	return nil
}

// change prints its text in place of the lines: of a range once, at its end.
func (m *machine) change(in *instruction) error {
	if in.to == nil || in.negate || !in.active {
		if err := m.out.raw(in.text); err != nil {
			return err
		}
	}
	return errDelete
}

func (m *machine) nextLine() error {
	if !m.in.more() {
		if err := m.in.err; err != nil {
			return err
		}
		return m.quitAtEnd()
	}
	if err := m.endCycle(); err != nil {
		return err
	}
	_, err := m.next()
	return err
}

// quitAtEnd is what GNU sed does when n and N find no next line: the pattern space is printed and the run ends.
func (m *machine) quitAtEnd() error {
	if !m.silent {
		if err := m.out.line(m.space, m.whole); err != nil {
			return err
		}
	}
	return errQuit
}

func (m *machine) appendLine() error {
	if !m.in.more() {
		if err := m.in.err; err != nil {
			return err
		}
		return m.quitAtEnd()
	}
	if err := m.flushQueue(); err != nil {
		return err
	}
	line, ok, err := m.in.next()
	if err != nil || !ok {
		return err
	}
	m.space = append(append(m.space, m.end), line...)
	m.whole = m.in.whole
	return m.charge()
}

func (m *machine) quit(in *instruction) error {
	m.Status = in.number
	if in.name == 'q' && !m.silent {
		if err := m.out.line(m.space, m.whole); err != nil {
			return err
		}
	}
	if in.name == 'Q' {
		m.queue = m.queue[:0]
	}
	return errQuit
}

func (m *machine) readLine(name string) error {
	lines, ok := m.readers[name]
	if !ok {
		if in, err := m.Open(m.ctx, m.standard(name)); err == nil {
			lines = m.Records(in, m.end)
		}
		m.readers[name] = lines
	}
	if lines == nil {
		return nil
	}
	line, ok := lines.Next()
	if ok {
		m.queue = append(m.queue, queued{text: bytes.Clone(line), line: true})
	}
	return lines.Err()
}

func (m *machine) transliterate(table map[rune]rune) {
	out := m.buf[:0]
	for i := 0; i < len(m.space); {
		r, size := utf8.DecodeRune(m.space[i:])
		if to, ok := table[r]; ok {
			out = utf8.AppendRune(out, to)
		} else {
			out = append(out, m.space[i:i+size]...)
		}
		i += size
	}
	m.buf, m.space = m.space, out
}

// list prints the pattern space so that every byte can be told, broken at the width.
func (m *machine) list(width int) error {
	if width < 0 {
		width = m.width
	}
	var out []byte
	column := 0
	put := func(text string) {
		if width > 1 && column+len(text) > width-1 {
			out = append(out, "\\\n"...)
			column = 0
		}
		out = append(out, text...)
		column += len(text)
	}
	for i := 0; i < len(m.space); {
		r, size := utf8.DecodeRune(m.space[i:])
		c := m.space[i]
		switch j := bytes.IndexByte([]byte("\\\a\b\f\n\r\t\v"), c); {
		case j >= 0:
			put(`\` + `\abfnrtv`[j:j+1])
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			put(fmt.Sprintf(`\%03o`, c))
		case size > 1:
			for _, b := range m.space[i : i+size] {
				put(fmt.Sprintf(`\%03o`, b))
			}
		default:
			put(string(r))
		}
		i += size
	}
	return m.out.raw(append(out, "$\n"...))
}
