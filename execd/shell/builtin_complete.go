package shell

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// completion is what compgen and complete are asked for.
type completion struct {
	actions             []string
	words, glob         string
	function, command   string
	filter              string
	prefix, suffix      string
	options             []string
	remove, print       bool
	wordlist, defaulted bool
}

var completionLetters = map[byte]string{
	'a': "alias", 'b': "builtin", 'c': "command", 'd': "directory", 'e': "export", 'f': "file", 'g': "group", 'j': "job",
	'k': "keyword", 's': "service", 'u': "user", 'v': "variable",
}

var completionActions = []string{
	"alias", "arrayvar", "binding", "builtin", "command", "directory", "disabled", "enabled", "export", "file",
	"function", "group", "helptopic", "hostname", "job", "keyword", "running", "service", "setopt", "shopt", "signal",
	"stopped", "user", "variable",
}

var completionOptions = []string{
	"bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs",
}

// completionArgs reads the options that compgen and complete share.
func (sh *shell) completionArgs(name string, args []string) (c completion, rest []string, status int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for j := 1; j < len(opt); j++ {
			l := opt[j]
			if action, ok := completionLetters[l]; ok {
				c.actions = append(c.actions, action)
				continue
			}
			switch l {
			case 'r':
				c.remove = true
				continue
			case 'p':
				c.print = true
				continue
			case 'D', 'E', 'I':
				c.defaulted = true
				continue
			}
			if strings.IndexByte("oAGWFCXPS", l) < 0 {
				return c, nil, sh.badOption(name, "-"+string(l))
			}
			value := opt[j+1:]
			if value == "" {
				if len(args) == 0 {
					sh.warnf("%s: -%c: option requires an argument", name, l)
					return c, nil, 2
				}
				value, args = args[0], args[1:]
			}
			if !c.set(l, value) {
				sh.warnf("%s: %s: invalid action name", name, value)
				return c, nil, 2
			}
			break
		}
	}
	return c, args, 0
}

func (c *completion) set(l byte, value string) bool {
	switch l {
	case 'o':
		c.options = append(c.options, value)
	case 'A':
		if !slices.Contains(completionActions, value) {
			return false
		}
		c.actions = append(c.actions, value)
	case 'G':
		c.glob = value
	case 'W':
		c.words, c.wordlist = value, true
	case 'F':
		c.function = value
	case 'C':
		c.command = value
	case 'X':
		c.filter = value
	case 'P':
		c.prefix = value
	case 'S':
		c.suffix = value
	}
	return true
}

func (sh *shell) builtinCompgen(args []string) int {
	c, rest, status := sh.completionArgs("compgen", args[1:])
	if status != 0 {
		return status
	}
	word := ""
	if len(rest) > 0 {
		word = rest[0]
	}
	var out []string
	for _, a := range c.actions {
		out = append(out, sh.completeAction(a, word)...)
	}
	if c.glob != "" {
		for _, n := range sh.glob(c.glob) {
			if strings.HasPrefix(n, word) {
				out = append(out, n)
			}
		}
	}
	if c.wordlist {
		list, ok := sh.completeWords(c.words, word)
		if !ok {
			return 1
		}
		out = append(out, list...)
	}
	if c.command != "" {
		text := sh.captureOutput(func(child *shell) { child.runSource(c.command+" compgen "+quoteTrace(word)+" ''", 0) })
		out = append(out, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	}
	if c.function != "" {
		list, ok := sh.completeFunction(c.function, word)
		if !ok {
			return 1
		}
		out = append(out, list...)
	}
	for _, o := range c.options {
		if !slices.Contains(completionOptions, o) {
			sh.warnf("compgen: %s: invalid option name", o)
			return 2
		}
	}
	if slices.Contains(c.options, "plusdirs") && len(out) > 0 {
		out = append(out, sh.completeAction("directory", word)...)
	}
	if len(out) == 0 && (slices.Contains(c.options, "default") || slices.Contains(c.options, "plusdirs") || slices.Contains(c.options, "dirnames")) {
		action := "file"
		if !slices.Contains(c.options, "default") {
			action = "directory"
		}
		out = sh.completeAction(action, word)
	}
	out = sh.filterCompletions(c, word, out)
	if len(out) == 0 {
		return 1
	}
	var b strings.Builder
	for _, s := range out {
		b.WriteString(c.prefix + s + c.suffix + "\n")
	}
	return sh.print(b.String())
}

func (sh *shell) filterCompletions(c completion, word string, in []string) []string {
	if c.filter == "" {
		return in
	}
	text, not := strings.CutPrefix(c.filter, "!")
	text = strings.ReplaceAll(text, "&", word)
	return slices.DeleteFunc(in, func(s string) bool { return sh.matches(text, s, false) != not })
}

func (sh *shell) completeWords(list, word string) ([]string, bool) {
	w, err := parseDocument(list)
	if err != nil {
		sh.warnf("compgen: %v", err)
		return nil, false
	}
	pieces := sh.pieces(nil, w.Parts, mode{split: true, noTilde: true})
	var out []string
	for _, f := range sh.split(pieces) {
		if s := f.text(); strings.HasPrefix(s, word) {
			out = append(out, s)
		}
	}
	return out, true
}

// completeFunction calls a completion function and returns what it put into COMPREPLY.
func (sh *shell) completeFunction(name, word string) ([]string, bool) {
	fn, ok := sh.funcs.Get(name)
	if !ok {
		sh.warnf("compgen: warning: -F option may not work as you expect")
		return nil, false
	}
	_ = sh.setList("COMP_WORDS", nil)
	_ = sh.set("COMP_CWORD", "-1")
	_ = sh.set("COMP_LINE", "")
	_ = sh.set("COMP_POINT", "0")
	sh.callFunction(fn, []string{name, "compgen", word, ""})
	return sh.lookup("COMPREPLY").values(), true
}

func (sh *shell) completeAction(action, word string) []string {
	var all []string
	switch action {
	case "alias":
		all = sh.alias.Keys()
	case "function":
		all = sh.funcs.Keys()
	case "builtin", "enabled", "helptopic":
		all = sortedBuiltins()
		if action == "helptopic" {
			all = append(all, keywords...)
		}
	case "disabled":
		all = slices.Sorted(maps.Keys(sh.disabled))
	case "keyword":
		all = keywords
	case "setopt":
		all = setNames
	case "shopt":
		all = shoptNames
	case "variable", "arrayvar", "export":
		sh.vars.Scan(func(name string, v *variable) bool {
			fits := action == "variable" && (v.set || v.isArray()) || action == "arrayvar" && v.isArray() || action == "export" && v.attrs&attrExport != 0
			if fits {
				all = append(all, name)
			}
			return true
		})
	case "signal":
		for n := 1; n < 32; n++ {
			all = append(all, "SIG"+signalName(n))
		}
	case "user":
		all = []string{sh.cfg.User}
	case "group":
		all = []string{"root"}
	case "command":
		all = sh.commandNames(word)
	case "file", "directory":
		return sh.completeFiles(action, word)
	}
	var out []string
	for _, s := range all {
		if strings.HasPrefix(s, word) {
			out = append(out, s)
		}
	}
	return out
}

func (sh *shell) commandNames(string) []string {
	set := map[string]bool{}
	for _, list := range [][]string{sh.alias.Keys(), keywords, sh.funcs.Keys(), sortedBuiltins(), slices.Collect(maps.Keys(sh.cfg.Commands))} {
		for _, n := range list {
			set[n] = true
		}
	}
	names := slices.Collect(maps.Keys(set))
	sort.Strings(names)
	return names
}

func (sh *shell) completeFiles(action, word string) (out []string) {
	dir, base := "", word
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		dir, base = word[:i+1], word[i+1:]
	}
	list := dir
	if list == "" {
		list = "."
	}
	entries, err := sh.fs().ReadDir(sh.ctx, list)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, base) || strings.HasPrefix(e.Name, ".") && !strings.HasPrefix(base, ".") {
			continue
		}
		if action == "directory" && e.Type != vfs.TypeDir {
			continue
		}
		out = append(out, dir+e.Name)
	}
	return out
}

func (sh *shell) builtinComplete(args []string) int {
	c, names, status := sh.completionArgs("complete", args[1:])
	if status != 0 {
		return status
	}
	specs := maps.Clone(sh.compSpecs)
	if specs == nil {
		specs = map[string]string{}
	}
	switch {
	case c.remove && len(names) == 0:
		clear(specs)
	case c.remove:
		for _, n := range names {
			delete(specs, n)
		}
	case c.print || len(args) == 1:
		return sh.printCompletions(names)
	case len(names) == 0 && !c.defaulted:
		sh.usage("complete")
		return 2
	default:
		for _, n := range names {
			specs[n] = strings.TrimRightFunc(quoteAll(args[1:len(args)-len(names)]), unicode.IsSpace)
		}
	}
	sh.compSpecs = specs
	return 0
}

func (sh *shell) printCompletions(names []string) int {
	status := 0
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(sh.compSpecs))
	}
	for _, n := range names {
		spec, ok := sh.compSpecs[n]
		if !ok {
			sh.warnf("complete: %s: no completion specification", n)
			status = 1
			continue
		}
		sh.print("complete " + spec + " " + n + "\n")
	}
	return status
}

func (sh *shell) builtinCompopt(args []string) int {
	for i, a := range args {
		if (a == "-o" || a == "+o") && i+1 < len(args) && !slices.Contains(completionOptions, args[i+1]) {
			sh.warnf("compopt: %s: invalid option name", args[i+1])
			return 2
		}
	}
	sh.warnf("compopt: not currently executing completion function")
	return 1
}
