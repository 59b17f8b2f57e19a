package shell

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// keywords are the reserved words.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
	"function", "time", "{", "}", "!", "[[", "]]", "coproc",
}

func (sh *shell) builtinType(args []string) int {
	var all, noFunctions, pathOnly, forcePath, kindOnly bool
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 'a':
				all = true
			case 'f':
				noFunctions = true
			case 'p':
				pathOnly = true
			case 'P':
				forcePath = true
			case 't':
				kindOnly = true
			default:
				return sh.badOption("type", "-"+string(c))
			}
		}
	}
	status := 0
	for _, name := range args {
		q := typeQuery{sh: sh, name: name, all: all, noFunctions: noFunctions, pathOnly: pathOnly || forcePath, force: forcePath, kindOnly: kindOnly}
		if !q.run() {
			status = 1
			if !kindOnly && !pathOnly && !forcePath {
				sh.warnf("type: %s: not found", name)
			}
		}
	}
	return status
}

// typeQuery is one name that type is asked about.
type typeQuery struct {
	sh                                                 *shell
	name                                               string
	all, noFunctions, pathOnly, force, kindOnly, found bool
	out                                                strings.Builder
}

func (q *typeQuery) run() bool {
	q.look()
	q.sh.print(q.out.String())
	return q.found
}

// say adds a line and reports whether that is enough.
func (q *typeQuery) say(kind, long string) bool {
	q.found = true
	switch {
	case q.pathOnly && kind != "file":
	case q.kindOnly:
		q.out.WriteString(kind + "\n")
	default:
		q.out.WriteString(long)
	}
	return !q.all
}

func (q *typeQuery) look() {
	sh := q.sh
	if !q.force {
		if v, ok := sh.alias.Get(q.name); ok && sh.shopt(optExpandAliases) {
			if q.say("alias", fmt.Sprintf("%s is aliased to `%s'\n", q.name, v)) {
				return
			}
		}
		if slices.Contains(keywords, q.name) && q.say("keyword", q.name+" is a shell keyword\n") {
			return
		}
		if f, ok := sh.funcs.Get(q.name); ok && !q.noFunctions {
			if q.say("function", q.name+" is a function\n"+printFunction(f)) {
				return
			}
		}
		if _, ok := sh.builtin(q.name); ok && q.say("builtin", q.builtinText()) {
			return
		}
	}
	q.files()
}

func (q *typeQuery) builtinText() string {
	if q.sh.on(optPosix) && slices.Contains(specialBuiltins, q.name) {
		return q.name + " is a special shell builtin\n"
	}
	return q.name + " is a shell builtin\n"
}

func (q *typeQuery) files() {
	sh := q.sh
	var paths []string
	hashed := false
	if strings.Contains(q.name, "/") {
		if sh.executable(q.name) {
			paths = []string{q.name}
		} else if _, err := sh.findPath(q.name); err == nil {
			paths = []string{q.name}
		}
	} else {
		if p, ok := sh.hashed[q.name]; ok && !q.all {
			paths, hashed = []string{p}, true
		} else {
			for _, l := range sh.findAll(q.name, !q.all) {
				paths = append(paths, l.path)
			}
		}
	}
	for _, p := range paths {
		text := fmt.Sprintf("%s is %s\n", q.name, p)
		if q.pathOnly {
			text = p + "\n"
		} else if hashed {
			text = fmt.Sprintf("%s is hashed (%s)\n", q.name, p)
		}
		if q.say("file", text) {
			return
		}
	}
}

// describeCommand is command -v and -V.
func (sh *shell) describeCommand(name string, short, std bool) bool {
	if !short {
		q := typeQuery{sh: sh, name: name}
		return q.run()
	}
	say := func(s string) bool {
		sh.print(s + "\n")
		return true
	}
	if v, ok := sh.alias.Get(name); ok && sh.shopt(optExpandAliases) {
		return say("alias " + name + "=" + singleQuote(v))
	}
	_, isBuiltin := sh.builtin(name)
	if slices.Contains(keywords, name) || sh.hasFunction(name) || isBuiltin {
		return say(name)
	}
	found, err := sh.findCommand(name)
	if err != nil || name == "" {
		return false
	}
	if strings.Contains(name, "/") && !strings.HasPrefix(name, "/") {
		return say(sh.fs().Abs(name))
	}
	return say(found.path)
}

func (sh *shell) builtinHash(args []string) int {
	args = args[1:]
	var path string
	var list, del, print bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch a {
		case "-r":
			sh.hashed = map[string]string{}
		case "-l":
			list = true
		case "-d":
			del = true
		case "-t":
			print = true
		case "-p":
			if len(args) == 0 {
				sh.warnf("hash: -p: option requires an argument")
				return 2
			}
			path, args = args[0], args[1:]
		default:
			return sh.badOption("hash", a)
		}
		if a == "-r" && len(args) == 0 {
			return 0
		}
	}
	if len(args) == 0 {
		return sh.listHashed(list)
	}
	next := make(map[string]string, len(sh.hashed)+1)
	for k, v := range sh.hashed {
		next[k] = v
	}
	status := 0
	for _, name := range args {
		switch {
		case del:
			delete(next, name)
			continue
		case print:
			if p, ok := next[name]; ok {
				sh.print(p + "\n")
				continue
			}
		case path != "":
			next[name] = path
			continue
		default:
			if _, ok := sh.builtin(name); ok {
				continue
			}
			if all := sh.findAll(name, true); len(all) > 0 {
				next[name] = all[0].path
				continue
			}
		}
		sh.warnf("hash: %s: not found", name)
		status = 1
	}
	sh.hashed = next
	return status
}

func (sh *shell) listHashed(reusable bool) int {
	if len(sh.hashed) == 0 {
		return sh.print("hash: hash table empty\n")
	}
	var names []string
	for n := range sh.hashed {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	if !reusable {
		b.WriteString("hits\tcommand\n")
	}
	for _, n := range names {
		if reusable {
			fmt.Fprintf(&b, "builtin hash -p %s %s\n", sh.hashed[n], n)
		} else {
			fmt.Fprintf(&b, "%4d\t%s\n", 0, sh.hashed[n])
		}
	}
	return sh.print(b.String())
}

func (sh *shell) builtinAlias(args []string) int {
	args = args[1:]
	status := 0
	if len(args) > 0 && args[0] == "-p" || len(args) == 0 {
		var b strings.Builder
		sh.alias.Scan(func(name, v string) bool {
			b.WriteString("alias " + name + "=" + singleQuote(v) + "\n")
			return true
		})
		sh.print(b.String())
		args = args[min(1, len(args)):]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if ok && name != "" {
			if strings.ContainsAny(name, "/$`'\"\\ \t\n|&;()<>") {
				sh.warnf("alias: `%s': invalid alias name", name)
				status = 1
				continue
			}
			sh.alias.Set(name, value)
			continue
		}
		v, found := sh.alias.Get(a)
		if !found {
			sh.warnf("alias: %s: not found", a)
			status = 1
			continue
		}
		sh.print("alias " + a + "=" + singleQuote(v) + "\n")
	}
	return status
}

func (sh *shell) builtinUnalias(args []string) int {
	args = args[1:]
	if len(args) == 0 {
		sh.usage("unalias")
		return 2
	}
	status := 0
	for _, a := range args {
		switch {
		case a == "-a":
			sh.alias.Clear()
		case a == "--":
		case strings.HasPrefix(a, "-"):
			return sh.badOption("unalias", a)
		default:
			if _, ok := sh.alias.Delete(a); !ok {
				sh.warnf("unalias: %s: not found", a)
				status = 1
			}
		}
	}
	return status
}
