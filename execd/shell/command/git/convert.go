package git

import (
	"bytes"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// conversion is how the ends of a file's lines are in the work tree, and whether git changes them: gitattributes(5), text
// and eol, and core.autocrlf and core.eol.
type conversion struct {
	on   bool
	auto bool // only in what looks like text
	crlf bool // in the work tree
}

// conversionOf says what becomes of a file. What another program is to convert is refused.
func (g *call) conversionOf(name string) (c conversion, err error) {
	if g.attributes == nil {
		g.attributes = &attributes{g: g, rules: map[string][]attributeRule{}}
	}
	values := map[string]string{}
	for _, a := range []string{"text", "crlf", "eol", "filter", "working-tree-encoding"} {
		if values[a], err = g.attributes.of(name, a); err != nil {
			return c, err
		}
	}
	if f := values["filter"]; f != "" && f != "false" {
		for _, how := range []string{"clean", "smudge", "process"} {
			if g.setting("filter."+f+"."+how) != "" {
				return c, fmt.Errorf("%s: its filter %s is a program, which is not supported here", name, f)
			}
		}
	}
	if e := values["working-tree-encoding"]; e != "" && e != "false" {
		return c, fmt.Errorf("%s: its encoding %s is not supported here", name, e)
	}
	text, eol := values["text"], values["eol"]
	if text == "" {
		text = values["crlf"]
	}
	autocrlf := g.setting("core.autocrlf")
	native := autocrlf == "true" || autocrlf != "input" && g.setting("core.eol") == "crlf"
	switch {
	case text == "false":
		return conversion{}, nil
	case text == "input":
		return conversion{on: true}, nil
	case eol == "crlf" || eol == "lf":
		return conversion{on: true, auto: text == "auto", crlf: eol == "crlf"}, nil
	case text == "auto":
		return conversion{on: true, auto: true, crlf: native}, nil
	case text == "true":
		return conversion{on: true, crlf: native}, nil
	case autocrlf == "true" || autocrlf == "input":
		return conversion{on: true, auto: true, crlf: autocrlf == "true"}, nil
	}
	return conversion{}, nil
}

// textStats is what git looks at to tell what a file is.
type textStats struct {
	nul, loneCR, loneLF, crlf, printable, odd int
}

func statText(data []byte) (s textStats) {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\r' && i+1 < len(data) && data[i+1] == '\n':
			s.crlf++
			i++
		case b == '\r':
			s.loneCR++
		case b == '\n':
			s.loneLF++
		case b == 0:
			s.nul++
			s.odd++
		case b == 127:
			s.odd++
		case b < 32 && b != '\b' && b != '\t' && b != 0x1b && b != '\f':
			s.odd++
		default:
			s.printable++
		}
	}
	if n := len(data); n > 0 && data[n-1] == 0x1a {
		s.odd-- // the end of a file, once
	}
	return s
}

func (s textStats) binary() bool { return s.loneCR > 0 || s.nul > 0 || s.printable>>7 < s.odd }

// clean makes of a file of the work tree what its object has. x, which may be nil, is for whether it had such line ends
// before.
func (g *call) clean(x *index.Index, name string, data []byte) ([]byte, error) {
	c, err := g.conversionOf(name)
	if err != nil || !c.on || !bytes.Contains(data, []byte("\r\n")) {
		return data, err
	}
	if c.auto {
		if statText(data).binary() || g.hadCRLF(x, name) {
			return data, nil
		}
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), nil
}

// hadCRLF says whether the file of the index has ends of lines that are not to be changed behind anybody's back.
func (g *call) hadCRLF(x *index.Index, name string) bool {
	if x == nil {
		var err error
		if x, err = g.readIndex(); err != nil {
			return false
		}
	}
	i, ok := findEntry(x, name)
	if !ok || !text(x.Entries[i].Mode) {
		return false
	}
	data, err := g.blob(x.Entries[i].Hash)
	if err != nil {
		return false
	}
	s := statText(data)
	return s.crlf > 0 && !s.binary()
}

// smudge makes of an object what the work tree is to have.
func (g *call) smudge(name string, data []byte) ([]byte, error) {
	c, err := g.conversionOf(name)
	if err != nil || !c.on || !c.crlf {
		return data, err
	}
	s := statText(data)
	if s.loneLF == 0 || c.auto && (s.loneCR > 0 || s.crlf > 0 || s.binary()) {
		return data, nil
	}
	out := make([]byte, 0, len(data)+s.loneLF)
	for i, b := range data {
		if b == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	return out, nil
}
