package sed

import (
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

func (p *parser) substitute(in *instruction) error {
	delim := p.peek()
	p.pos++
	expr, ok := p.delimited(delim, true)
	if !ok {
		return p.fail("unterminated `s' command")
	}
	start := p.pos
	if _, ok = p.delimited(delim, false); !ok {
		return p.fail("unterminated `s' command")
	}
	replacement := p.src[start : p.pos-1]
	s := &substitution{nth: 1}
	in.sub = s
	o := p.options
	if err := p.flags(in, s, &o); err != nil {
		return err
	}
	var err error
	if s.re, err = p.compile(expr, o); err != nil {
		return err
	}
	s.parts, err = p.replacement(replacement, delim)
	if err != nil {
		return err
	}
	return nil
}

func (p *parser) flags(in *instruction, s *substitution, o *regex.Options) error {
	numbered := false
	for {
		switch c := p.peek(); {
		case c == 'g':
			if s.global {
				return p.fail("multiple `g' options to `s' command")
			}
			s.global = true
		case c == 'p':
			if s.print > 0 {
				return p.fail("multiple `p' options to `s' command")
			}
			s.print++
		case c == 'i' || c == 'I':
			o.Fold = true
		case c == 'm' || c == 'M':
			o.Multi = true
		case c >= '0' && c <= '9':
			n, _ := p.number()
			if n == 0 {
				return p.fail("number option to `s' command may not be zero")
			}
			if numbered {
				return p.fail("multiple number options to `s' command")
			}
			s.nth, numbered = n, true
			continue
		case c == 'w':
			p.pos++
			p.skip(" \t")
			name := p.toLineEnd()
			if name == "" {
				return p.fail("missing filename in r/R/w/W commands")
			}
			var err error
			if s.sink, err = p.sinks.open(name); err != nil {
				return err
			}
			p.program.commands = append(p.program.commands, in)
			return nil
		case c == 0 || c == '\n' || c == ';' || c == '}' || c == '#' || c == ' ' || c == '\t':
			p.skip(" \t")
			if next := p.peek(); next != 0 && strings.IndexByte("\n;}#", next) < 0 {
				p.pos++
				return p.fail("unknown option to `s'")
			}
			p.program.commands = append(p.program.commands, in)
			return nil
		default:
			p.pos++
			return p.fail("unknown option to `s'")
		}
		p.pos++
	}
}

// replacement cuts the right side of an s into its parts.
func (p *parser) replacement(text string, delim byte) ([]part, error) {
	var parts []part
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			parts, literal = append(parts, part{text: literal, group: -1}), nil
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '&' && delim != '&':
			flush()
			parts = append(parts, part{group: 0})
		case c != '\\' || i+1 == len(text):
			literal = append(literal, c)
		default:
			i++
			next := text[i]
			switch {
			case next >= '0' && next <= '9' && next != delim:
				if int(next-'0') > p.groups {
					return nil, p.fail("invalid reference \\%c on `s' command's RHS", next)
				}
				flush()
				parts = append(parts, part{group: int(next - '0')})
			case strings.IndexByte("LUElu", next) >= 0:
				flush()
				parts = append(parts, part{group: -1, mode: next})
			case next == delim:
				literal = append(literal, next)
			default:
				if out, size := escape(text[i:]); size > 0 {
					literal = append(literal, out...)
					i += size - 1
				} else {
					_, size := utf8.DecodeRuneInString(text[i:])
					literal = append(literal, text[i:i+size]...)
					i += size - 1
				}
			}
		}
	}
	flush()
	return parts, nil
}
