package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a compiled pattern of the shell: * ? [set] and the extended ?( *( +( @( !( groups. It is matched by sets of
// positions, so a match costs at most the product of the lengths of pattern and text, whatever the pattern is.
type pattern struct {
	nodes []patNode
	exact string // the text, when the pattern is nothing but text
	plain bool
	fold  bool
}

type patOp uint8

const (
	patText patOp = iota
	patAny        // ?
	patStar       // *
	patSet        // [...]
	patGroup
)

type patNode struct {
	op    patOp
	text  string
	set   *charSet
	group byte // of ?*+@!
	alts  [][]patNode
}

// compilePattern takes a pattern in which a backslash quotes the next character.
func compilePattern(text string, fold bool) *pattern {
	c := patCompiler{fold: fold}
	nodes, _ := c.sequence(text, false)
	p := &pattern{nodes: nodes, fold: fold}
	switch {
	case len(nodes) == 0:
		p.plain = true
	case len(nodes) == 1 && nodes[0].op == patText && !fold:
		p.plain, p.exact = true, nodes[0].text
	}
	return p
}

type patCompiler struct{ fold bool }

// sequence compiles up to the end or, in a group, up to a | or ) on its level; it returns what is left from there.
func (c patCompiler) sequence(text string, inGroup bool) (nodes []patNode, rest string) {
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			nodes = append(nodes, patNode{op: patText, text: c.folded(lit.String())})
			lit.Reset()
		}
	}
	for text != "" {
		ch := text[0]
		if len(text) > 1 && text[1] == '(' && strings.IndexByte("?*+@!", ch) >= 0 {
			if alts, after, ok := c.group(text[2:]); ok {
				flush()
				nodes = append(nodes, patNode{op: patGroup, group: ch, alts: alts})
				text = after
				continue
			}
		}
		switch ch {
		case '\\':
			if len(text) == 1 {
				lit.WriteByte('\\')
				text = ""
				continue
			}
			_, n := utf8.DecodeRuneInString(text[1:])
			lit.WriteString(text[1 : 1+n])
			text = text[1+n:]
			continue
		case '?':
			flush()
			nodes = append(nodes, patNode{op: patAny})
		case '*':
			flush()
			if n := len(nodes); n == 0 || nodes[n-1].op != patStar {
				nodes = append(nodes, patNode{op: patStar})
			}
		case '[':
			if set, n := parseSet(text, c.fold); n > 0 {
				flush()
				nodes = append(nodes, patNode{op: patSet, set: set})
				text = text[n:]
				continue
			}
			lit.WriteByte(ch)
		case '|', ')':
			if inGroup {
				flush()
				return nodes, text
			}
			lit.WriteByte(ch)
		default:
			lit.WriteByte(ch)
		}
		text = text[1:]
	}
	flush()
	return nodes, ""
}

func (c patCompiler) folded(s string) string {
	if c.fold {
		return strings.ToLower(s)
	}
	return s
}

func (c patCompiler) group(text string) (alts [][]patNode, rest string, ok bool) {
	for {
		nodes, after := c.sequence(text, true)
		alts = append(alts, nodes)
		if after == "" {
			return nil, "", false
		}
		text = after[1:]
		if after[0] == ')' {
			return alts, text, true
		}
	}
}

// charSet is a bracket expression.
type charSet struct {
	not    bool
	fold   bool
	single string
	ranges [][2]rune
	class  []func(rune) bool
}

func (s *charSet) has(r rune) bool {
	ok := s.hasExact(r)
	if !ok && s.fold {
		ok = s.hasExact(unicode.ToLower(r)) || s.hasExact(unicode.ToUpper(r))
	}
	return ok != s.not
}

func (s *charSet) hasExact(r rune) bool {
	if strings.ContainsRune(s.single, r) && r != utf8.RuneError {
		return true
	}
	for _, x := range s.ranges {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	for _, f := range s.class {
		if f(r) {
			return true
		}
	}
	return false
}

var charClasses = map[string]func(rune) bool{
	"alnum": func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"alpha": unicode.IsLetter,
	"ascii": func(r rune) bool { return r < 128 },
	"blank": func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl": unicode.IsControl,
	"digit": func(r rune) bool { return r >= '0' && r <= '9' },
	"graph": func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) },
	"lower": unicode.IsLower,
	"print": unicode.IsPrint,
	"punct": func(r rune) bool {
		return r < 128 && r > 32 && !isNameByte(byte(r)) && r != 127 || r == '_' || unicode.IsPunct(r)
	},
	"space": unicode.IsSpace,
	"upper": unicode.IsUpper,
	"word":  func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) },
	"xdigit": func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	},
}

// parseSet parses a bracket expression at the start of text; n is its length, or 0 when it is none.
func parseSet(text string, fold bool) (set *charSet, n int) {
	set = &charSet{fold: fold}
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		set.not = true
		i++
	}
	for first := true; i < len(text); first = false {
		switch {
		case text[i] == ']' && !first:
			return set, i + 1
		case text[i] == '/':
			return nil, 0
		case strings.HasPrefix(text[i:], "[:"):
			if end := strings.Index(text[i:], ":]"); end > 0 {
				if f, ok := charClasses[text[i+2:i+end]]; ok {
					set.class = append(set.class, f)
				}
				i += end + 2
				continue
			}
		}
		r, size := setRune(text[i:])
		i += size
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			to, size := setRune(text[i+1:])
			i += 1 + size
			if r <= to {
				set.ranges = append(set.ranges, [2]rune{r, to})
			}
			continue
		}
		set.single += string(r)
	}
	return nil, 0
}

// setRune is one character of a set: quoted by a backslash, or an equivalence class or collating symbol of one.
func setRune(text string) (rune, int) {
	if len(text) > 1 && text[0] == '\\' {
		r, n := utf8.DecodeRuneInString(text[1:])
		return r, n + 1
	}
	if len(text) > 4 && (strings.HasPrefix(text, "[=") && text[3:5] == "=]" || strings.HasPrefix(text, "[.") && text[3:5] == ".]") {
		return rune(text[2]), 5
	}
	return utf8.DecodeRuneInString(text)
}

// positions is a set of offsets in a text, ascending.
type positions []int

// matching is one match of a pattern with a text. It counts what it looks at, and ends with the shell.
type matching struct {
	sh     *shell
	s      string
	looked int
}

// patience is how many places a match looks at between two looks at the context.
const patience = 1 << 14

func (m *matching) look(n int) {
	if m.looked += n; m.looked >= patience {
		m.sh.work(m.looked)
		m.looked = 0
	}
}

// match reports whether the pattern matches all of s.
func (p *pattern) match(sh *shell, s string) bool {
	if p.plain {
		return s == p.exact
	}
	if p.fold {
		s = strings.ToLower(s)
	}
	m := &matching{sh: sh, s: s}
	if !p.hasGroup() {
		return m.simple(p.nodes)
	}
	ends := m.run(p.nodes, positions{0})
	return len(ends) > 0 && ends[len(ends)-1] == len(s)
}

func (p *pattern) hasGroup() bool {
	for i := range p.nodes {
		if p.nodes[i].op == patGroup {
			return true
		}
	}
	return false
}

// simple matches without groups: after a star only the last one needs to be tried again.
func (m *matching) simple(nodes []patNode) bool {
	s, n, i := m.s, 0, 0
	starNode, starAt := -1, 0
	for {
		m.look(1)
		if n < len(nodes) && nodes[n].op == patStar {
			starNode, starAt = n, i
			n++
			continue
		}
		if n == len(nodes) && i == len(s) {
			return true
		}
		if n < len(nodes) {
			if k := nodes[n].one(s[i:]); k >= 0 {
				n, i = n+1, i+k
				continue
			}
		}
		if starNode < 0 || starAt >= len(s) {
			return false
		}
		_, k := utf8.DecodeRuneInString(s[starAt:])
		starAt += k
		n, i = starNode+1, starAt
	}
}

// one matches a node that has one length, at the start of s: how many bytes, or -1.
func (n *patNode) one(s string) int {
	switch n.op {
	case patText:
		if strings.HasPrefix(s, n.text) {
			return len(n.text)
		}
	case patAny:
		if s != "" {
			_, k := utf8.DecodeRuneInString(s)
			return k
		}
	case patSet:
		if s != "" {
			if r, k := utf8.DecodeRuneInString(s); n.set.has(r) {
				return k
			}
		}
	}
	return -1
}

// run returns where a match can end that starts at any of the positions.
func (m *matching) run(nodes []patNode, at positions) positions {
	for i := range nodes {
		if len(at) == 0 {
			return nil
		}
		at = m.step(&nodes[i], at)
	}
	return at
}

func (m *matching) step(n *patNode, at positions) positions {
	var out positions
	switch n.op {
	case patStar:
		for i := at[0]; i <= len(m.s); {
			m.look(1)
			out = append(out, i)
			if i == len(m.s) {
				break
			}
			_, k := utf8.DecodeRuneInString(m.s[i:])
			i += k
		}
		return out
	case patGroup:
		return m.group(n, at)
	}
	m.look(len(at))
	for _, i := range at {
		if k := n.one(m.s[i:]); k >= 0 {
			out = append(out, i+k)
		}
	}
	return out.tidy()
}

func (m *matching) group(n *patNode, at positions) positions {
	switch n.group {
	case '@':
		return m.alternatives(n, at)
	case '?':
		return append(m.alternatives(n, at), at...).tidy()
	case '!':
		return m.others(n, at)
	}
	seen := make(map[int]bool)
	var all positions
	if n.group == '*' {
		all = append(all, at...)
	}
	for front := at; len(front) > 0; {
		var fresh positions
		for _, i := range m.alternatives(n, front) {
			if !seen[i] {
				seen[i] = true
				fresh = append(fresh, i)
			}
		}
		all = append(all, fresh...)
		front = fresh
	}
	return all.tidy()
}

// others is where a match of !(…) can end: from each start, wherever none of its alternatives ends.
func (m *matching) others(n *patNode, at positions) positions {
	found := make([]bool, len(m.s)+1)
	for _, i := range at {
		taken := make(map[int]bool)
		for _, e := range m.alternatives(n, positions{i}) {
			taken[e] = true
		}
		for j := i; j <= len(m.s); {
			m.look(1)
			found[j] = found[j] || !taken[j]
			if j == len(m.s) {
				break
			}
			_, k := utf8.DecodeRuneInString(m.s[j:])
			j += k
		}
	}
	var out positions
	for i, ok := range found {
		if ok {
			out = append(out, i)
		}
	}
	return out
}

func (m *matching) alternatives(n *patNode, at positions) positions {
	var out positions
	for _, alt := range n.alts {
		out = append(out, m.run(alt, at)...)
	}
	return out.tidy()
}

// tidy sorts and drops what is there twice; a set is in order already, mostly.
func (p positions) tidy() positions {
	ordered := true
	for i := 1; i < len(p) && ordered; i++ {
		ordered = p[i-1] < p[i]
	}
	if ordered {
		return p
	}
	seen := make(map[int]bool, len(p))
	out := p[:0]
	for _, i := range p {
		if !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	sortInts(out)
	return out
}

// prefixLen is how long a match at the start of s is, the longest or the shortest; -1 for none.
func (p *pattern) prefixLen(sh *shell, s string, longest bool) int {
	if p.plain {
		if strings.HasPrefix(s, p.exact) {
			return len(p.exact)
		}
		return -1
	}
	if p.fold {
		s = strings.ToLower(s)
	}
	ends := (&matching{sh: sh, s: s}).run(p.nodes, positions{0})
	switch {
	case len(ends) == 0:
		return -1
	case longest:
		return ends[len(ends)-1]
	}
	return ends[0]
}

func (p *pattern) prefix(sh *shell, s string, longest bool) int {
	return max(p.prefixLen(sh, s, longest), 0)
}

// suffixAt is where the longest or shortest match starts that ends where s does; -1 for none.
func (p *pattern) suffixAt(sh *shell, s string, longest bool) int {
	if p.plain {
		if strings.HasSuffix(s, p.exact) {
			return len(s) - len(p.exact)
		}
		return -1
	}
	if longest {
		for i := 0; ; {
			sh.work(len(s) - i)
			if p.match(sh, s[i:]) {
				return i
			}
			if i == len(s) {
				return -1
			}
			_, k := utf8.DecodeRuneInString(s[i:])
			i += k
		}
	}
	for i := len(s); ; {
		sh.work(len(s) - i)
		if p.match(sh, s[i:]) {
			return i
		}
		if i == 0 {
			return -1
		}
		_, k := utf8.DecodeLastRuneInString(s[:i])
		i -= k
	}
}

func (p *pattern) suffix(sh *shell, s string, longest bool) int {
	if i := p.suffixAt(sh, s, longest); i >= 0 {
		return i
	}
	return len(s)
}

// search finds the leftmost longest match at or after i.
func (p *pattern) search(sh *shell, s string, i int) (from, to int) {
	if p.plain {
		if k := strings.Index(s[i:], p.exact); k >= 0 {
			return i + k, i + k + len(p.exact)
		}
		return -1, -1
	}
	for {
		sh.work(len(s) - i)
		if n := p.prefixLen(sh, s[i:], true); n >= 0 {
			return i, i + n
		}
		if i >= len(s) {
			return -1, -1
		}
		_, k := utf8.DecodeRuneInString(s[i:])
		i += k
	}
}

// work counts n characters that a pattern looks at.
func (sh *shell) work(n int) {
	if n > 512 {
		if sh.ctx.Err() != nil || sh.meter.Step(n/512) != nil {
			sh.stop()
		}
	}
}
