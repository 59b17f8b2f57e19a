package sed

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// parser reads a script.
type parser struct {
	src     string
	pos     int
	options regex.Options
	sinks   *sinks
	where   func(pos int) string // names a place for messages
	program *program
	blocks  []int
	labels  map[string]int
	groups  int // of the last pattern, for what its replacement may name
}

// maxCommands bounds a script.
const maxCommands = 1 << 16

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s", p.where(p.pos), fmt.Sprintf(format, args...))
}

func (p *parser) parse() (*program, error) {
	p.program, p.labels = &program{}, map[string]int{}
	if strings.HasPrefix(p.src, "#n\n") || p.src == "#n" {
		p.program.silent = true
	}
	for {
		p.skip(" \t\n;")
		if p.pos >= len(p.src) {
			break
		}
		if err := p.command(); err != nil {
			return nil, err
		}
		if len(p.program.commands) > maxCommands {
			return nil, p.fail("script too long")
		}
	}
	if len(p.blocks) > 0 {
		p.pos = 0
		return nil, p.fail("unmatched `{'")
	}
	return p.program, p.resolve()
}

// errLabel is a jump to nowhere.
var errLabel = errors.New("can't find label for jump to")

// resolve finds the targets of jumps.
func (p *parser) resolve() error {
	for _, in := range p.program.commands {
		if strings.IndexByte("btT", in.name) < 0 {
			continue
		}
		in.jump = len(p.program.commands)
		if in.label != "" {
			at, ok := p.labels[in.label]
			if !ok {
				return fmt.Errorf("%w `%s'", errLabel, in.label)
			}
			in.jump = at
		}
	}
	return nil
}

func (p *parser) skip(chars string) {
	for p.pos < len(p.src) && strings.IndexByte(chars, p.src[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) command() error {
	in := &instruction{}
	var err error
	if in.from, err = p.address(); err != nil {
		return err
	}
	if in.from != nil {
		p.skip(" \t")
		if p.peek() == ',' {
			p.pos++
			p.skip(" \t")
			if in.to, err = p.address(); err != nil {
				return err
			}
			if in.to == nil {
				p.pos++
				return p.fail("unexpected `,'")
			}
		}
		if in.from.kind == atZero && (in.to == nil || in.to.kind != atRegex) {
			return p.fail("invalid usage of line address 0")
		}
	}
	p.skip(" \t")
	for p.peek() == '!' {
		if p.pos++; in.negate {
			return p.fail("multiple `!'s")
		}
		in.negate = true
		p.skip(" \t")
	}
	if p.pos >= len(p.src) {
		return p.fail("missing command")
	}
	in.name = p.src[p.pos]
	p.pos++
	return p.arguments(in)
}

// arguments reads what follows a command's letter.
func (p *parser) arguments(in *instruction) error {
	switch in.name {
	case '#':
		if in.from != nil {
			return p.fail("comments don't accept any addresses")
		}
		p.toLineEnd()
		return nil
	case ':':
		return p.label(in)
	case '{':
		p.blocks = append(p.blocks, len(p.program.commands))
		p.program.commands = append(p.program.commands, in)
		return nil
	case '}':
		return p.closeBlock(in)
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return p.end(in)
	case 'a', 'i', 'c':
		return p.text(in)
	case 'b', 't', 'T':
		p.skip(" \t")
		in.label = p.word()
		return p.end(in)
	case 'q', 'Q', 'l', 'L':
		if in.to != nil && (in.name == 'q' || in.name == 'Q') {
			return p.fail("command only uses one address")
		}
		p.skip(" \t")
		n, ok := p.number()
		if in.number = n; !ok && in.name == 'l' {
			in.number = -1
		}
		return p.end(in)
	case 'r', 'R', 'w', 'W':
		return p.file(in)
	case 's':
		return p.substitute(in)
	case 'y':
		return p.transliterate(in)
	case 'v':
		p.toLineEnd()
		return nil
	}
	return p.fail("unknown command: `%c'", in.name)
}

func (p *parser) toLineEnd() string {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] != '\n' {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte(" \t\n;}", p.src[p.pos]) < 0 {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *parser) label(in *instruction) error {
	if in.from != nil {
		return p.fail(": doesn't want any addresses")
	}
	p.skip(" \t")
	name := p.word()
	if name == "" {
		return p.fail("\":\" lacks a label")
	}
	p.labels[name] = len(p.program.commands)
	return nil
}

func (p *parser) closeBlock(in *instruction) error {
	if in.from != nil {
		return p.fail("} doesn't want any addresses")
	}
	if len(p.blocks) == 0 {
		return p.fail("unexpected `}'")
	}
	open := p.blocks[len(p.blocks)-1]
	p.blocks = p.blocks[:len(p.blocks)-1]
	p.program.commands[open].jump = len(p.program.commands)
	return p.separator()
}

// end adds a command that must be followed by a separator.
func (p *parser) end(in *instruction) error {
	p.program.commands = append(p.program.commands, in)
	return p.separator()
}

func (p *parser) separator() error {
	p.skip(" \t")
	switch p.peek() {
	case 0, '\n', ';', '}', '#':
		return nil
	}
	p.pos++
	return p.fail("extra characters after command")
}

// text reads the text of a, i and c: on the same line, or after a backslash and a newline.
func (p *parser) text(in *instruction) error {
	p.skip(" \t")
	if p.pos >= len(p.src) {
		return p.fail("expected \\ after `a', `c' or `i'")
	}
	if p.peek() == '\\' {
		p.pos++
		behind := p.pos
		p.skip(" \t")
		if p.peek() == '\n' {
			p.pos++
		} else if p.pos < len(p.src) {
			p.pos = behind // text on the same line keeps its blanks
		} else {
			return p.fail("expected \\ after `a', `c' or `i'")
		}
	}
	var b bytes.Buffer
	for p.pos < len(p.src) && p.src[p.pos] != '\n' {
		if p.src[p.pos] != '\\' {
			b.WriteByte(p.src[p.pos])
			p.pos++
			continue
		}
		p.pos++
		if p.pos >= len(p.src) {
			break
		}
		if r, size := escape(p.src[p.pos:]); size > 0 && b.Len() > 0 {
			b.WriteString(r)
			p.pos += size
			continue
		}
		b.WriteByte(p.src[p.pos])
		p.pos++
	}
	b.WriteByte('\n')
	in.text = b.Bytes()
	p.program.commands = append(p.program.commands, in)
	return nil
}

// escape reads an escape of one character, without its backslash; size is 0 when it is none.
func escape(s string) (text string, size int) {
	if i := strings.IndexByte("afnrtv", s[0]); i >= 0 {
		return "\a\f\n\r\t\v"[i : i+1], 1
	}
	base, most := 0, 0
	switch s[0] {
	case 'x':
		base, most = 16, 2
	case 'o':
		base, most = 8, 3
	case 'd':
		base, most = 10, 3
	case 'c':
		if len(s) > 1 {
			return string([]byte{s[1]&^0x20 ^ 0x40}), 2
		}
		return "", 0
	default:
		return "", 0
	}
	n, size := uint64(0), 1
	for size < len(s) && size <= most {
		d, err := strconv.ParseUint(s[size:size+1], base, 8)
		if err != nil {
			break
		}
		n = n*uint64(base) + d
		size++
	}
	if size == 1 {
		return "", 0
	}
	return string([]byte{byte(n)}), size
}

func (p *parser) file(in *instruction) error {
	p.skip(" \t")
	name := p.toLineEnd()
	if name == "" {
		return p.fail("missing filename in r/R/w/W commands")
	}
	in.text = []byte(name)
	if in.name == 'w' || in.name == 'W' {
		var err error
		if in.sink, err = p.sinks.open(name); err != nil {
			return err
		}
	}
	p.program.commands = append(p.program.commands, in)
	return nil
}

func (p *parser) transliterate(in *instruction) error {
	delim := p.peek()
	p.pos++
	from, ok := p.delimited(delim, false)
	to, ok2 := "", false
	if ok {
		to, ok2 = p.delimited(delim, false)
	}
	if !ok || !ok2 {
		return p.fail("unterminated `y' command")
	}
	a, b := []rune(unescapeY(from)), []rune(unescapeY(to))
	if len(a) != len(b) {
		return p.fail("strings for `y' command are different lengths")
	}
	in.table = make(map[rune]rune, len(a))
	for i, r := range a {
		if _, there := in.table[r]; !there {
			in.table[r] = b[i]
		}
	}
	return p.end(in)
}

func unescapeY(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if text, size := escape(s[i:]); size > 0 {
			b.WriteString(text)
			i += size - 1
			continue
		}
		if s[i] != '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
