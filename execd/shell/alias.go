package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser knows no aliases, so a line whose first words are some is parsed twice: its text is changed and what comes
// of that is run in its place. An alias that opens what another line closes is changed with all that follows.

func (sh *shell) aliasesOn() bool {
	return sh.noAliases == 0 && sh.alias.Len() > 0 && sh.shopt(optExpandAliases)
}

// aliasUse is a word of a line that is to be replaced.
type aliasUse struct {
	from, to int // offsets in the text
	value    string
}

// expandAliases replaces the aliases in the statements of a line: the line's new text, and the text behind it.
func (sh *shell) expandAliases(text string, stmts []*syntax.Stmt) (line, rest string, ok bool) {
	from, to := int(stmts[0].Pos().Offset()), lineEnd(text, stmts)
	line = text[from:to]
	var uses []aliasUse
	for _, st := range stmts {
		syntax.Walk(st, func(n syntax.Node) bool {
			if call, isCall := n.(*syntax.CallExpr); isCall {
				uses = append(uses, sh.aliasUses(call, from)...)
			}
			return true
		})
	}
	if len(uses) == 0 {
		return "", "", false
	}
	var b strings.Builder
	at := 0
	for _, u := range uses {
		if u.from < at || u.to > len(line) {
			continue
		}
		b.WriteString(line[at:u.from])
		b.WriteString(u.value)
		at = u.to
	}
	b.WriteString(line[at:])
	return b.String(), text[to:], true
}

// aliasUses are the words of a command that are aliases: the first, and the next behind one that ends in a blank.
func (sh *shell) aliasUses(call *syntax.CallExpr, base int) (uses []aliasUse) {
	seen := map[string]bool{}
	for _, w := range call.Args {
		name, ok := literalWord(w)
		if !ok {
			return uses
		}
		value, found := sh.aliasValue(name, seen)
		if !found {
			return uses
		}
		uses = append(uses, aliasUse{int(w.Pos().Offset()) - base, int(w.End().Offset()) - base, value})
		if !strings.HasSuffix(value, " ") && !strings.HasSuffix(value, "\t") {
			return uses
		}
	}
	return uses
}

// aliasValue expands an alias all the way: its value's first word may be another, but not itself.
func (sh *shell) aliasValue(name string, seen map[string]bool) (string, bool) {
	value, ok := sh.alias.Get(name)
	if !ok || seen[name] {
		return "", false
	}
	inner := map[string]bool{name: true}
	for n := range seen {
		inner[n] = true
	}
	trimmed := strings.TrimLeft(value, " \t\n")
	end := strings.IndexAny(trimmed, " \t\n;&|()<>")
	if end < 0 {
		end = len(trimmed)
	}
	if v, ok := sh.aliasValue(trimmed[:end], inner); ok {
		rest := trimmed[end:]
		if strings.HasSuffix(v, " ") {
			rest = sh.aliasNext(rest, inner)
		}
		value = v + rest
	}
	return value, true
}

// aliasNext expands the word after an alias that ends in a blank.
func (sh *shell) aliasNext(rest string, seen map[string]bool) string {
	word := strings.TrimLeft(rest, " \t")
	end := strings.IndexAny(word, " \t\n;&|()<>")
	if end < 0 {
		end = len(word)
	}
	if v, ok := sh.aliasValue(word[:end], seen); ok {
		return rest[:len(rest)-len(word)] + v + word[end:]
	}
	return rest
}

// runExpanded runs a line whose aliases have been replaced. They are not looked for in it again.
func (sh *shell) runExpanded(line string, depth int) {
	sh.noAliases++
	defer func() { sh.noAliases-- }()
	sh.runSource(line, depth+1)
}
