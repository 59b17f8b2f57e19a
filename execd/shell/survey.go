package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// Missing looks a script over, or the command args when source is empty, and says why a machine should run it rather
// than this shell: it needs a command that is neither built in nor in the table, or an option that the grammar says such
// a command has not, nobody can tell before what it needs, or it would see that it is not on a machine. It is empty when
// the shell can do it all.
func Missing(commands command.Table, grammar command.Grammar, source string, args []string) string {
	y := &survey{commands: commands, grammar: grammar, functions: map[string]bool{}}
	if source != "" {
		y.script(source)
	} else {
		y.invocation(wordsOf(args))
	}
	return y.why
}

// survey looks over one script, and the scripts within it.
type survey struct {
	commands  command.Table
	grammar   command.Grammar
	functions map[string]bool
	depth     int
	why       string // the first reason that was found
}

// surveyed is a word of a command.
type surveyed struct {
	text  string
	fixed bool // text is all of it, whatever happens
}

func wordsOf(args []string) []surveyed {
	words := make([]surveyed, len(args))
	for i, a := range args {
		words[i] = surveyed{a, true}
	}
	return words
}

func (y *survey) need(format string, args ...any) {
	if y.why == "" {
		y.why = fmt.Sprintf(format, args...)
	}
}

// script looks over a script's text.
func (y *survey) script(text string) {
	if y.depth++; y.depth > maxSurveyDepth || len(text) > maxSurveySize {
		y.need("it is too much to look through")
		return
	}
	defer func() { y.depth-- }()
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	f, err := p.Parse(strings.NewReader(text), "")
	if err != nil {
		y.need("it is not understood: %v", err)
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if d, ok := n.(*syntax.FuncDecl); ok {
			y.functions[d.Name.Value] = true
		}
		return true
	})
	syntax.Walk(f, func(n syntax.Node) bool {
		y.node(n)
		return y.why == ""
	})
}

func (y *survey) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			words := make([]surveyed, len(n.Args))
			for i, w := range n.Args {
				words[i] = surveyWord(w)
			}
			y.invocation(words)
		}
	case *syntax.Word:
		y.place(surveyWord(n).text)
	case *syntax.Assign:
		if n.Name != nil && n.Name.Value == "PATH" {
			y.need("it sets PATH")
		}
	case *syntax.ParamExp:
		if n.Param != nil && slices.Contains(placeVariables, n.Param.Value) {
			y.need("it asks for %s, and the workspace is elsewhere in a container", n.Param.Value)
		}
	}
}

// surveyWord returns a word, or what of it is fixed.
func surveyWord(w *syntax.Word) surveyed {
	s := surveyed{fixed: true}
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				s.text += strings.ReplaceAll(p.Value, `\`, "")
			case *syntax.SglQuoted:
				s.text += p.Value
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				s.fixed = false
			}
		}
	}
	add(w.Parts)
	return s
}

// placeVariables are those that say where the workspace is.
var placeVariables = []string{"PWD", "OLDPWD", "DIRSTACK"}

// placeCommands tell where the workspace is.
var placeCommands = []string{"pwd", "dirs", "pushd", "popd", "realpath"}

// machinePath finds a path that is outside of the workspace on a machine, and is nothing here.
var machinePath = regexp.MustCompile(`(?:^|[=:,\s'"])(/(?:bin|boot|etc|home|lib|lib32|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|usr|var|workspace))(?:/|$|[\s'";:,])`)

// place looks for what is on a machine alone.
func (y *survey) place(text string) {
	if m := machinePath.FindStringSubmatch(text); m != nil {
		y.need("it names %s, which is a container's", m[1])
	}
}

// invocation looks at one command.
func (y *survey) invocation(words []surveyed) {
	if y.why != "" {
		return
	}
	if len(words) == 0 || !words[0].fixed || words[0].text == "" {
		y.need("one of its commands is not known before it runs")
		return
	}
	name, args := words[0].text, words[1:]
	for _, a := range args {
		y.place(a.text)
	}
	if y.functions[name] {
		return
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if !slices.Contains(binDirs, name[:i]) {
			y.need("it runs the file %s", name)
			return
		}
		name = name[i+1:]
	}
	if builtins[name] == nil && y.commands[name] == nil && !slices.Contains(shellNames, name) {
		y.need("%s is not built in", name)
		return
	}
	if slices.Contains(placeCommands, name) || name == "readlink" && len(args) > 1 {
		y.need("%s tells where the workspace is, which is elsewhere in a container", name)
		return
	}
	if name == "git" && !gitVerb(args).fixed {
		y.need("one of its commands is not known before it runs")
		return
	}
	if builtins[name] == nil {
		y.options(name, args)
	}
	y.within(name, args)
}

// options looks for what a command of the table has not. A word that is not known before is taken for none of that.
func (y *survey) options(name string, args []surveyed) {
	knows := y.grammar[name]
	if knows == nil {
		return
	}
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a.text; !a.fixed {
			words[i] = "x"
		}
	}
	if err := knows(words); err != nil {
		y.need("%s: %v", name, err)
	}
}

// shellNames are the names under which the shell runs itself.
var shellNames = []string{"bash", "sh", "dash", "rbash"}

// carrier is a command that runs another, which is in its arguments.
type carrier struct {
	valued string // options that the next word belongs to
	skip   int    // operands before the command
}

var carriers = map[string]carrier{
	"builtin": {}, "command": {}, "exec": {valued: "a"}, "env": {valued: "CSu"}, "timeout": {valued: "ks", skip: 1},
	"xargs": {valued: "adEILnPs"},
}

// within looks for commands in the arguments of one.
func (y *survey) within(name string, args []surveyed) {
	c, carries := carriers[name]
	switch {
	case carries:
		if inner := c.command(args); len(inner) > 0 {
			y.invocation(inner)
		}
	case slices.Contains(shellNames, name):
		y.shellCommand(args)
	case name == "." || name == "source":
		y.need("it reads another script")
	case name == "eval":
		y.eval(args)
	case name == "trap" && len(args) > 1 && !strings.HasPrefix(args[0].text, "-"):
		y.eval(args[:1])
	case name == "which" || name == "type" || name == "hash":
		for _, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				y.invocation([]surveyed{a})
			}
		}
	case name == "find":
		y.find(args)
	case name == "mapfile" || name == "readarray" || name == "alias" || name == "enable" || name == "complete":
		y.callback(name, args)
	case strings.HasSuffix(name, "awk"):
		for _, a := range args {
			if awkRuns.MatchString(a.text) {
				y.need("its awk runs commands")
			}
		}
	}
}

// awkRuns finds what in an awk program runs a command.
var awkRuns = regexp.MustCompile(`\bsystem\s*\(|[^|]\|\s*getline|[^|]\|&?\s*"`)

// command returns what a carrier runs.
func (c carrier) command(args []surveyed) []surveyed {
	for len(args) > 0 && args[0].fixed && len(args[0].text) > 1 && args[0].text[0] == '-' {
		option := args[0].text
		args = args[1:]
		if option == "--" {
			break
		}
		last := option[len(option)-1:]
		if !strings.HasPrefix(option, "--") && strings.Contains(c.valued, last) && !strings.ContainsAny(option[1:len(option)-1], c.valued) && len(args) > 0 {
			args = args[1:]
		}
	}
	for len(args) > 0 && strings.Contains(args[0].text, "=") {
		args = args[1:]
	}
	return args[min(c.skip, len(args)):]
}

// shellCommand is a shell within: only one with -c says what it runs.
func (y *survey) shellCommand(args []surveyed) {
	for i, a := range args {
		letters, option := strings.CutPrefix(a.text, "-")
		if !a.fixed || !option || strings.HasPrefix(letters, "-") {
			break
		}
		if strings.Contains(letters, "c") && i+1 < len(args) {
			y.eval(args[i+1 : i+2])
			return
		}
		if strings.HasSuffix(letters, "o") {
			break // its value follows
		}
	}
	y.need("it starts a shell")
}

// eval looks over what words together are as a script.
func (y *survey) eval(words []surveyed) {
	var text []string
	for _, w := range words {
		if !w.fixed {
			y.need("one of its commands is not known before it runs")
			return
		}
		text = append(text, w.text)
	}
	y.script(strings.Join(text, " "))
}

// find looks at the commands that find is to run.
func (y *survey) find(args []surveyed) {
	for i, a := range args {
		if a.fixed && slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.text) {
			inner := args[i+1:]
			if end := slices.IndexFunc(inner, func(w surveyed) bool { return w.fixed && (w.text == ";" || w.text == "+") }); end >= 0 {
				inner = inner[:end]
			}
			y.invocation(inner)
		}
	}
}

// gitVerb is which of git's commands it is: the word behind the options.
func gitVerb(args []surveyed) surveyed {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		n := 1
		if args[0].text == "-C" || args[0].text == "-c" {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	if len(args) == 0 {
		return surveyed{fixed: true}
	}
	return args[0]
}

// callback refuses builtins that make commands of words where they do that.
func (y *survey) callback(name string, args []surveyed) {
	for _, a := range args {
		if name == "alias" || name == "enable" || name == "complete" || strings.HasPrefix(a.text, "-C") {
			y.need("%s changes which commands there are", name)
			return
		}
	}
}
