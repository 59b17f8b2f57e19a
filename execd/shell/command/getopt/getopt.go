package getopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Option is one option as it was found. Name is the short letter, or the long name of an option that has no letter.
type Option struct {
	Name  string
	Value string
	Given bool   // whether there was a value
	Long  string // the long name, when the option was given by one, in full
}

// Dashed is the option as a message names it: "-w", or "--width" when that was given.
func (o Option) Dashed() string {
	if o.Long != "" {
		return "--" + o.Long
	}
	return "-" + o.Name
}

// argument says what follows an option.
type argument uint8

const (
	none argument = iota
	required
	optional
)

type long struct {
	name string // as it is typed, without dashes
	as   string // the Option's name
	arg  argument
}

// Parser knows the options of one command.
type Parser struct {
	short   map[byte]argument
	long    []long
	ordered bool // the first operand ends the options
}

// New returns a parser. short is getopt(3)'s string: a letter, with ":" for a value and "::" for one that may be left
// out; a leading "+" makes the first operand end the options. Each long is "name", with ":" or "::" as above, and "=x"
// when it means the short option x.
func New(short string, longs ...string) *Parser {
	p := &Parser{short: make(map[byte]argument)}
	short, p.ordered = strings.CutPrefix(short, "+")
	for short != "" {
		letter := short[0]
		short = short[1:]
		rest := strings.TrimLeft(short, ":")
		p.short[letter] = argument(len(short) - len(rest))
		short = rest
	}
	for _, l := range longs {
		name, as, aliased := strings.Cut(l, "=")
		bare := strings.TrimRight(name, ":")
		if !aliased {
			as = bare
		}
		p.long = append(p.long, long{bare, as, argument(len(name) - len(bare))})
	}
	return p
}

// ErrHelp and ErrVersion are that --help or --version was given to a command that has no option of that name.
var (
	ErrHelp    = errors.New("help was asked for")
	ErrVersion = errors.New("the version was asked for")
)

// Parse returns the options in their order, and the operands.
func (p *Parser) Parse(args []string) (options []Option, operands []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			return options, append(operands, args...), nil
		case strings.HasPrefix(arg, "--"):
			o, taken, err := p.parseLong(arg[2:], args)
			if err != nil {
				return nil, nil, err
			}
			options, args = append(options, o), args[taken:]
		case len(arg) > 1 && arg[0] == '-':
			found, taken, err := p.parseShort(arg[1:], args)
			if err != nil {
				return nil, nil, err
			}
			options, args = append(options, found...), args[taken:]
		case p.ordered:
			return options, append(operands, append([]string{arg}, args...)...), nil
		default:
			operands = append(operands, arg)
		}
	}
	return options, operands, nil
}

// parseShort reads a cluster, and says how many of the arguments after it were values.
func (p *Parser) parseShort(cluster string, args []string) (options []Option, taken int, err error) {
	for cluster != "" {
		o := Option{Name: cluster[:1]}
		arg, known := p.short[cluster[0]]
		cluster = cluster[1:]
		if !known || o.Name == ":" {
			return nil, 0, fmt.Errorf("invalid option -- '%s'", o.Name)
		}
		switch {
		case arg == none:
		case cluster != "" || arg == optional:
			o.Value, o.Given, cluster = cluster, cluster != "", ""
		case len(args) == 0:
			return nil, 0, fmt.Errorf("option requires an argument -- '%s'", o.Name)
		default:
			o.Value, o.Given, taken = args[0], true, 1
		}
		options = append(options, o)
	}
	return options, taken, nil
}

func (p *Parser) parseLong(text string, args []string) (o Option, taken int, err error) {
	name, value, given := strings.Cut(text, "=")
	l, err := p.find(name)
	if err != nil {
		return o, 0, err
	}
	o = Option{l.as, value, given, l.name}
	switch {
	case l.arg == none && given:
		return o, 0, fmt.Errorf("option '--%s' doesn't allow an argument", l.name)
	case l.arg != required || given:
		return o, 0, nil
	case len(args) == 0:
		return o, 0, fmt.Errorf("option '--%s' requires an argument", l.name)
	}
	return Option{l.as, args[0], true, l.name}, 1, nil
}

// find returns the long option that name is, or is the beginning of. Two that mean the same are not ambiguous.
func (p *Parser) find(name string) (long, error) {
	var found []long
	for _, l := range p.long {
		if l.name == name {
			return l, nil
		}
		if strings.HasPrefix(l.name, name) {
			found = append(found, l)
		}
	}
	switch {
	case name == "help":
		return long{}, ErrHelp
	case name == "version":
		return long{}, ErrVersion
	case len(found) == 0:
		return long{}, fmt.Errorf("unrecognized option '--%s'", name)
	case !same(found):
		var b strings.Builder
		for _, l := range found {
			fmt.Fprintf(&b, " '--%s'", l.name)
		}
		return long{}, errors.New("option '--" + name + "' is ambiguous; possibilities:" + b.String())
	}
	return found[0], nil
}

// Summary lists the options, one to a line: the letter, then the names that mean the same, then what is not a letter.
func (p *Parser) Summary() string {
	var b strings.Builder
	line := func(letter string, arg argument, names []long) {
		b.WriteString("  ")
		if letter != "" {
			b.WriteString("-" + letter)
		} else {
			b.WriteString("   ")
		}
		for i, l := range names {
			if i > 0 || letter != "" {
				b.WriteString(",")
			}
			b.WriteString(" --" + l.name + [...]string{"", "=VALUE", "[=VALUE]"}[l.arg])
		}
		if len(names) == 0 {
			b.WriteString([...]string{"", " VALUE", "[VALUE]"}[arg])
		}
		b.WriteString("\n")
	}
	letters := make([]string, 0, len(p.short))
	for c := range p.short {
		letters = append(letters, string(rune(c)))
	}
	slices.Sort(letters)
	for _, letter := range letters {
		var names []long
		for _, l := range p.long {
			if l.as == letter {
				names = append(names, l)
			}
		}
		line(letter, p.short[letter[0]], names)
	}
	for _, l := range p.long {
		if len(l.as) > 1 {
			line("", l.arg, []long{l})
		}
	}
	return b.String()
}

func same(found []long) bool {
	for _, l := range found {
		if l.as != found[0].as {
			return false
		}
	}
	return true
}
