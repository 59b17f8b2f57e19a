package sed

import (
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

func (p *parser) address() (*address, error) {
	switch c := p.peek(); {
	case c >= '0' && c <= '9':
		return p.lineAddress(), nil
	case c == '$':
		p.pos++
		return &address{kind: atLast}, nil
	case c == '/' || c == '\\':
		if c == '\\' {
			p.pos++
		}
		return p.regexAddress()
	case c == '+' || c == '~':
		p.pos++
		n, ok := p.number()
		if !ok {
			return nil, p.fail("expected number")
		}
		return &address{kind: map[byte]kind{'+': plusLines, '~': multiple}[c], n: n}, nil
	}
	return nil, nil
}

func (p *parser) lineAddress() *address {
	n, _ := p.number()
	if p.peek() == '~' {
		p.pos++
		if step, _ := p.number(); step > 0 {
			return &address{kind: atStep, n: n, step: step}
		}
	}
	if n == 0 {
		return &address{kind: atZero}
	}
	return &address{kind: atLine, n: n}
}

func (p *parser) number() (int, bool) {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	n, err := strconv.Atoi(p.src[start:p.pos])
	return n, err == nil
}

func (p *parser) regexAddress() (*address, error) {
	delim := p.peek()
	p.pos++
	text, ok := p.delimited(delim, true)
	if !ok {
		return nil, p.fail("unterminated address regex")
	}
	o := p.options
	for {
		switch p.peek() {
		case 'I':
			o.Fold = true
		case 'M':
			o.Multi = true
		default:
			re, err := p.compile(text, o)
			return &address{kind: atRegex, re: re}, err
		}
		p.pos++
	}
}

// delimited reads up to an unescaped delimiter. In a regular expression an escaped delimiter is the character itself, and
// brackets protect it.
func (p *parser) delimited(delim byte, isRegex bool) (string, bool) {
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == delim:
			p.pos++
			return b.String(), true
		case c == '\\' && p.pos+1 < len(p.src):
			next := p.src[p.pos+1]
			p.pos += 2
			switch {
			case next == delim && isRegex && strings.IndexByte(`.*[]^$+?(){}|`, delim) >= 0:
				b.WriteString("[" + string(next) + "]")
				if next == '^' || next == ']' {
					s := b.String()
					b.Reset()
					b.WriteString(s[:len(s)-3] + `\` + string(next))
				}
			case next == delim:
				b.WriteByte(next)
			case next == '\n' && isRegex:
				b.WriteString("\n")
			default:
				b.WriteByte(c)
				b.WriteByte(next)
			}
			continue
		case c == '\n' && isRegex:
			return "", false
		case c == '[' && isRegex:
			end := bracketEnd(p.src[p.pos:])
			b.WriteString(p.src[p.pos : p.pos+end])
			p.pos += end
			continue
		}
		b.WriteByte(c)
		p.pos++
	}
	return "", false
}

// bracketEnd returns the length of the bracket expression at the start of s, 1 when it does not end.
func bracketEnd(s string) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for ; i < len(s) && s[i] != '\n'; i++ {
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
				continue
			}
		}
		if s[i] == ']' {
			return i + 1
		}
	}
	return 1
}

func (p *parser) compile(text string, o regex.Options) (*pattern, error) {
	if text == "" {
		p.groups = 9
		return &pattern{empty: true}, nil
	}
	re, err := regex.Compile(text, o)
	if err != nil {
		return nil, p.fail("%s", err)
	}
	p.groups = re.Groups()
	return &pattern{re: re}, nil
}
