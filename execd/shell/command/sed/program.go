package sed

import "github.com/carrelfs/carrel/execd/shell/command/regex"

// program is a parsed script.
type program struct {
	commands []*instruction
	silent   bool // the first line is "#n"
}

// instruction is one command.
type instruction struct {
	from, to *address
	negate   bool
	name     byte
	text     []byte // of a, i, c, y's from, r's file
	label    string
	jump     int // where b, t, T and a block's end go; of "{" the instruction after its "}"
	number   int // exit code, line length
	sub      *substitution
	table    map[rune]rune // y
	sink     *sink         // of w and W

	active bool // within its range
	until  int  // line number at which the range ends
}

// kind of an address.
type kind uint8

const (
	atLine    kind = iota
	atStep         // first~step
	atLast         // $
	atRegex        // /re/
	atZero         // 0, before /re/
	plusLines      // addr,+N
	multiple       // addr,~N
)

type address struct {
	kind    kind
	n, step int
	re      *pattern
}

// pattern is a regular expression; an empty one is whatever was used last.
type pattern struct {
	re    *regex.Regexp
	empty bool
}

// substitution is an s command.
type substitution struct {
	re     *pattern
	parts  []part
	global bool
	nth    int
	print  int
	sink   *sink
}

// part is a piece of a replacement: text, or what a group matched (0 is all), with a change of case before it.
type part struct {
	text  []byte
	group int  // -1 for text
	mode  byte // U, L or E from here on; u or l for the next character; 0 for nothing
}
