package git

import (
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// flags are the options of one verb, by the form that they are handled as.
type flags struct {
	given  map[string][]string // values by option; "" for one without
	args   []string
	paths  []string // behind --
	dashed bool     // there was a --
}

func (f *flags) has(name string) bool { return len(f.given[name]) > 0 }

// value is the last one given.
func (f *flags) value(name string) string {
	if v := f.given[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// flagError is an option that there is not, or one without its value.
type flagError struct {
	text   string
	status int
}

func (e *flagError) Error() string { return e.text }

func unknownFlag(option string) error {
	name := strings.TrimLeft(option, "-")
	if strings.HasPrefix(option, "--") {
		return &flagError{fmt.Sprintf("unknown option `%s'", name), 129}
	}
	return &flagError{fmt.Sprintf("unknown switch `%s'", name[:min(1, len(name))]), 129}
}

// flags parses the arguments of the verb, and says what is wrong with them.
func (g *call) flags(args []string) (*flags, error) {
	f, err := parseFlags(args, verbs[g.verb].options)
	var wrong *flagError
	if errors.As(err, &wrong) {
		g.tell("error: %s\n", wrong.text)
		return nil, tool.Exit(wrong.status)
	}
	return f, err
}

// flagSpec is what options a verb has.
type flagSpec struct {
	names map[string]string // the option that a name stands for
	takes map[string]byte   // ':' a value, '?' one that is stuck to it or none
}

func newFlagSpec(options []string) flagSpec {
	s := flagSpec{map[string]string{}, map[string]byte{}}
	for _, o := range options {
		all := strings.Split(o, "=")
		name := strings.TrimRight(all[0], ":?")
		if kind := all[0][len(name):]; kind != "" {
			s.takes[name] = kind[0]
		}
		for _, alias := range append(all[1:], name) {
			s.names[alias] = name
		}
	}
	return s
}

// parseFlags parses arguments. options has every option with its aliases: "m:=message" takes a value and is also
// --message, "U?" takes one that is stuck to it or none; "<n>" stands for a number behind a dash, "-" for a dash alone.
func parseFlags(args, options []string) (*flags, error) {
	s := newFlagSpec(options)
	f := &flags{given: map[string][]string{}}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case f.dashed:
			f.paths = append(f.paths, a)
		case a == "--":
			f.dashed = true
		case strings.HasPrefix(a, "--"):
			text, value, stuck := strings.Cut(a[2:], "=")
			name, ok := s.names[text]
			if !ok || len(text) == 1 {
				return nil, unknownFlag(a)
			}
			if stuck && s.takes[name] == 0 {
				return nil, &flagError{fmt.Sprintf("option `%s' takes no value", text), 129}
			}
			if s.takes[name] == ':' && !stuck {
				if len(args) == 0 {
					return nil, &flagError{fmt.Sprintf("option `%s' requires a value", text), 129}
				}
				value, args = args[0], args[1:]
			}
			f.given[name] = append(f.given[name], value)
		case len(a) > 1 && a[0] == '-':
			var err error
			if args, err = s.letters(f, a[1:], args); err != nil {
				return nil, err
			}
		default:
			f.args = append(f.args, a)
		}
	}
	return f, nil
}

// letters parses a word of short options.
func (s flagSpec) letters(f *flags, word string, args []string) ([]string, error) {
	if _, ok := s.names["<n>"]; ok && strings.Trim(word, "0123456789") == "" {
		f.given["n"] = append(f.given["n"], word)
		return args, nil
	}
	for word != "" {
		letter := word[:1]
		word = word[1:]
		name, ok := s.names[letter]
		if !ok {
			return nil, unknownFlag("-" + letter)
		}
		value := ""
		switch s.takes[name] {
		case '?':
			value, word = word, ""
		case ':':
			if value, word = word, ""; value == "" {
				if len(args) == 0 {
					return nil, &flagError{fmt.Sprintf("switch `%s' requires a value", letter), 129}
				}
				value, args = args[0], args[1:]
			}
		}
		f.given[name] = append(f.given[name], value)
	}
	return args, nil
}

// Knows says what of git's arguments is not built in: a command, an option, or a way to name a revision.
func Knows(args []string) error {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-C" || args[0] == "-c":
			args = args[min(2, len(args)):]
		case args[0] == "--version" || args[0] == "--no-pager" || args[0] == "-P":
			args = args[1:]
		default:
			return unknownFlag(args[0])
		}
	}
	if len(args) == 0 {
		return nil
	}
	v, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("%s is not built in", args[0])
	}
	f, err := parseFlags(args[1:], v.options)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if form := f.value("porcelain"); args[0] == "status" && form != "" && form != "v1" && form != "1" {
		return fmt.Errorf("status --porcelain=%s is not built in", form)
	}
	if args[0] == "log" || args[0] == "show" {
		if err := checkListing(f); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	for _, a := range f.args {
		if strings.HasPrefix(a, ":/") {
			return fmt.Errorf("%s %s is not built in", args[0], a)
		}
	}
	for _, a := range append(f.args, f.paths...) {
		if _, _, err := pathMagic(a); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	return nil
}
