package regex

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Syntax is a language of expressions.
type Syntax uint8

// The languages.
const (
	Basic    Syntax = iota // POSIX basic, with GNU's \+ \? \| \< \> \b \w
	Extended               // POSIX extended, with GNU's \< \> \b \w and back-references
	Awk                    // extended, with awk's escapes, also between brackets
	Perl                   // the common part of Perl's
)

// Options change what Compile makes.
type Options struct {
	Syntax  Syntax
	Fold    bool // letters match in either case
	Multi   bool // ^ and $ match at every line of the text
	Escapes bool // \n, \t, \xHH and their like are characters, as in sed
	Word    bool // a match has no word character on either side (grep -w)
	Whole   bool // a match is the whole text (grep -x)

	// Step, when not nil, is told of every batch of steps of the backtracking machine, and of every few thousand
	// characters of a long text. Its error ends the search.
	Step func(n int) error
}

// Regexp is a compiled expression.
type Regexp struct {
	options  Options
	text     []byte         // when the expression is nothing but this
	required []byte         // what every match holds
	folded   []byte         // what every match holds in either case, in lower case
	re       *regexp.Regexp // nil when only the machine will do
	size     int            // of re, in instructions, or usualSize if that is more
	ascii    bool           // re is right for ASCII texts only
	context  bool           // what is before a search's start matters
	program  *program
	groups   int
	names    map[string]int
}

// Compile parses and compiles an expression.
func Compile(expr string, o Options) (*Regexp, error) { return CompileAny([]string{expr}, o) }

// CompileAny compiles expressions of which any may match.
func CompileAny(exprs []string, o Options) (*Regexp, error) {
	alt := &node{op: opAlternate}
	r := &Regexp{options: o, names: make(map[string]int)}
	for _, expr := range exprs {
		p := &parser{
			src: expr, syntax: o.Syntax, escapes: o.Escapes, base: r.groups, groups: r.groups,
			closed: make(map[int]bool), names: r.names,
			flags: flags{fold: o.Fold, dotAll: o.Syntax != Perl, multi: o.Multi},
		}
		n, err := p.parse()
		if err != nil {
			return nil, err
		}
		r.groups = p.groups
		alt.subs = append(alt.subs, n)
	}
	if len(alt.subs) == 1 {
		alt = alt.subs[0]
	}
	return r, r.build(alt)
}

// CompileLiterals compiles texts of which any may match, with nothing special in them.
func CompileLiterals(texts []string, o Options) (*Regexp, error) {
	alt := &node{op: opAlternate}
	for _, t := range texts {
		n := &node{op: opLiteral, text: t, fold: o.Fold}
		if t == "" {
			n = &node{op: opEmpty}
		}
		alt.subs = append(alt.subs, n)
	}
	if len(alt.subs) == 1 {
		alt = alt.subs[0]
	}
	r := &Regexp{options: o}
	return r, r.build(alt)
}

// build chooses the engines. The machine is made only where it can be needed.
func (r *Regexp) build(n *node) error {
	r.required = []byte(n.required(false))
	if fold := n.required(true); isASCII([]byte(fold)) {
		r.folded = bytes.ToLower([]byte(fold))
	}
	n = r.bounded(n)
	if text, ok := n.literal(); ok && text != "" {
		r.text = []byte(text)
	}
	r.context = n.looksAround()
	w := &rewriter{}
	w.node(n)
	if !w.failed {
		source := w.String()
		re, err := regexp.Compile(source)
		r.size = sizeOf(source)
		if err == nil && r.options.Syntax != Perl {
			re.Longest()
		}
		r.re, r.ascii = re, w.ascii
	}
	r.program = assemble(n, r.groups)
	return nil
}

// sizeOf estimates how many instructions an expression of RE2's is: its length, unless something in it is counted.
func sizeOf(source string) int {
	size := len(source)
	if strings.Contains(source, "{") {
		if tree, err := syntax.Parse(source, syntax.Perl); err == nil {
			if prog, err := syntax.Compile(tree.Simplify()); err == nil {
				size = len(prog.Inst)
			}
		}
	}
	return max(size, usualSize)
}

// bounded adds what Word and Whole ask for.
func (r *Regexp) bounded(n *node) *node {
	group := &node{op: opGroup, subs: []*node{n}}
	switch {
	case r.options.Whole:
		return &node{op: opConcat, subs: []*node{{op: opTextBegin}, group, {op: opTextEnd}}}
	case r.options.Word && n.op != opEmpty && n.edgeIsWord(true) && n.edgeIsWord(false):
		return &node{op: opConcat, subs: []*node{{op: opWordEdge}, group, {op: opWordEdge}}}
	case r.options.Word:
		return &node{op: opConcat, subs: []*node{wordless(true), group, wordless(false)}}
	}
	return n
}

// wordless matches where no word character is before (or after).
func wordless(behind bool) *node {
	s := &set{}
	s.word()
	return &node{op: opLook, behind: behind, negate: true, subs: []*node{{op: opSet, set: s}}}
}

// Groups returns how many groups the expression captures.
func (r *Regexp) Groups() int { return r.groups }

// Group returns the number of a named group.
func (r *Regexp) Group(name string) (int, bool) {
	i, ok := r.names[name]
	return i, ok
}

// Required returns a text that every match holds, or nothing.
func (r *Regexp) Required() []byte { return r.required }

// RequiredFold returns an ASCII text in lower case that every match in an ASCII text holds in either case, or nothing.
func (r *Regexp) RequiredFold() []byte { return r.folded }

// Literal returns the text that the expression is, when it is nothing but text.
func (r *Regexp) Literal() []byte { return r.text }

// Match reports whether b holds a match.
func (r *Regexp) Match(b []byte) (bool, error) {
	if len(r.required) > 0 && !bytes.Contains(b, r.required) {
		return false, nil
	}
	if r.text != nil {
		return true, nil
	}
	if r.automaton(b) {
		return r.re.Match(b), nil
	}
	loc, err := r.search(b, 0)
	return loc != nil, err
}

// Find returns the first match and its groups, as regexp.FindSubmatchIndex does; nil when there is none.
func (r *Regexp) Find(b []byte) ([]int, error) {
	i := bytes.Index(b, r.required)
	switch {
	case i < 0:
		return nil, nil
	case r.text != nil:
		return []int{i, i + len(r.text)}, nil
	case r.automaton(b):
		return r.re.FindSubmatchIndex(b), nil
	}
	return r.search(b, 0)
}

// Counting returns the expression with another Options.Step.
func (r *Regexp) Counting(step func(n int) error) *Regexp {
	c := *r
	c.options.Step = step
	return &c
}

// FindAll returns up to n matches (all when n is negative), one after another; an empty one directly after another
// match does not count.
func (r *Regexp) FindAll(b []byte, n int) ([][]int, error) {
	if len(r.required) > 0 && !bytes.Contains(b, r.required) {
		return nil, nil
	}
	// What looks at what is before a match cannot begin in the middle of a text.
	if r.text == nil && r.automaton(b) && (len(b) < manyText || r.context || r.options.Step == nil) {
		return r.re.FindAllSubmatchIndex(b, n), nil
	}
	var all [][]int
	err := r.Each(b, func(loc []int) error {
		if len(all) == n {
			return errEnough
		}
		all = append(all, loc)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// errEnough ends Each for FindAll.
var errEnough = errors.New("enough")

// Each calls f for the matches that FindAll would return, one after another, until f gives an error, which it returns: all
// matches together can take much more memory than the text.
func (r *Regexp) Each(b []byte, f func(loc []int) error) error {
	if len(r.required) > 0 && !bytes.Contains(b, r.required) {
		return nil
	}
	fast := r.text == nil && !r.context && r.automaton(b)
	found := 0
	for pos, last := 0, -1; pos <= len(b); {
		loc, err := r.next(b, pos, fast)
		if err != nil || loc == nil {
			return err
		}
		if loc[1] > loc[0] || loc[0] != last {
			if err := f(loc); err != nil {
				return err
			}
			if found++; found%stepBatch == 0 && r.options.Step != nil {
				if err := r.options.Step(stepBatch); err != nil {
					return err
				}
			}
		}
		if pos, last = loc[1], loc[1]; loc[1] == loc[0] {
			pos += max(runeLen(b[pos:]), 1)
		}
	}
	return nil
}

// next finds the first match at or after pos. Fast is by the automaton at once; what that takes at most is counted.
func (r *Regexp) next(b []byte, pos int, fast bool) ([]int, error) {
	if !fast {
		return r.search(b, pos)
	}
	if r.options.Step != nil {
		if err := r.options.Step(1 + (len(b)-pos)>>4); err != nil {
			return nil, err
		}
	}
	loc := r.re.FindSubmatchIndex(b[pos:])
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += pos
		}
	}
	return loc, nil
}

// automaton says whether the standard library's engine can search b, and in time to be stopped.
func (r *Regexp) automaton(b []byte) bool {
	n := len(b)
	if !r.context { // what cannot stream has but the machine, for texts that are long indeed
		n = n * r.size / usualSize
	}
	return r.re != nil && (n < longText || r.options.Step == nil) && (!r.ascii || isASCII(b))
}

// search finds the first match at or after pos by what can be stopped on the way.
func (r *Regexp) search(b []byte, pos int) ([]int, error) {
	switch {
	case r.text != nil:
		i := bytes.Index(b[pos:], r.text)
		if i < 0 {
			return nil, nil
		}
		return []int{pos + i, pos + i + len(r.text)}, nil
	case r.re != nil && !r.context && (!r.ascii || isASCII(b)):
		return r.stream(b, pos)
	}
	return r.program.find(b, pos, r.options.Step)
}
