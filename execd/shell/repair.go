package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser decides early what bash leaves open: whether (( is an expression, and whether !( is a pattern. Where it has
// decided otherwise than bash would, the text or the tree is read anew here.

// repair changes a text that the parser refuses into one that means what bash takes it for. text starts at the line
// with the error, or before.
func (sh *shell) repair(text string, depth int) (string, bool) {
	if sh.aliasesOn() {
		if fixed, ok := sh.lexicalAliases(text); ok {
			sh.noAliases++
			defer func() { sh.noAliases-- }()
			sh.runSource(fixed, depth+1)
			return "", true
		}
	}
	if fixed, ok := quoteKeys(text); ok {
		return fixed, true
	}
	if fixed, ok := splitParens(text); ok {
		return fixed, true
	}
	for _, mend := range []func(string) (string, bool){quoteExpression, escapeName, escapeLet} {
		if fixed, ok := mend(text); ok {
			return fixed, true
		}
	}
	return sh.endHere(text)
}

// hereWord is where a here-document is asked for, with its delimiter.
var hereWord = regexp.MustCompile(`<<-?[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([\w.-]+))`)

// endHere ends a here-document that the end of the text ends, with a warning.
func (sh *shell) endHere(text string) (string, bool) {
	for _, m := range slices.Backward(hereWord.FindAllStringSubmatchIndex(text, maxHeres)) {
		var word string
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				word = text[m[i]:m[i+1]]
			}
		}
		if fixed := strings.TrimSuffix(text, "\n") + "\n" + word + "\n"; parses(fixed) {
			line := sh.line + strings.Count(text[:m[0]], "\n")
			sh.warnf("warning: here-document at line %d delimited by end-of-file (wanted `%s')", line, word)
			return fixed, true
		}
	}
	return "", false
}

// quoteKeys quotes the subscripts of associative arrays that the parser refuses, since it takes each for an expression, as in
// m=([two words]=1), and says whether the parser gets any further.
func quoteKeys(text string) (string, bool) {
	before, ok := text, false
	for range maxKeyRepairs {
		at, wrong := refusal(text)
		if !wrong {
			return text, true
		}
		open := strings.LastIndexAny(text[:min(at+1, len(text))], "[\n")
		if open < 0 || text[open] != '[' {
			break
		}
		n := strings.IndexAny(text[open+1:], "]\n'\"\\`")
		if n < 0 || text[open+1+n] != ']' || open+1+n < at || n == 0 {
			break
		}
		close := open + 1 + n
		text = text[:open+1] + `"` + text[open+1:close] + `"` + text[close:]
		if next, wrong := refusal(text); wrong && next <= close+2 {
			break
		}
		before, ok = text, true
	}
	return before, ok
}

// refusal is where the parser finds an error in a text.
func refusal(text string) (offset int, wrong bool) {
	var parse syntax.ParseError
	var lang syntax.LangError
	switch err := syntaxOf(text); {
	case errors.As(err, &parse):
		return min(int(parse.Pos.Offset()), len(text)), true
	case errors.As(err, &lang):
		return min(int(lang.Pos.Offset()), len(text)), true
	}
	return 0, false
}

// splitParens makes two parentheses that the parser has taken for an expression's two of a subshell's.
func splitParens(text string) (string, bool) {
	at, _ := refusal(text)
	for from := 0; ; {
		i := strings.Index(text[from:], "((")
		if i < 0 {
			return "", false
		}
		i += from
		if fixed := text[:i+1] + " " + text[i+1:]; expressionEnd(text[i:]) < 0 {
			if next, wrong := refusal(fixed); !wrong || next > at+1 {
				return fixed, true
			}
		}
		from = i + 1
	}
}

// parses reports whether a text is one that the parser takes.
func parses(text string) bool { return syntaxOf(text) == nil }

func syntaxOf(text string) error {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	_, err := p.Parse(strings.NewReader(text), "")
	return err
}

// lexicalAliases replaces the aliases at the start of the first line of a text that is no syntax without them.
func (sh *shell) lexicalAliases(text string) (string, bool) {
	trimmed := strings.TrimLeft(text, " \t\n")
	for strings.HasPrefix(trimmed, "#") {
		_, trimmed, _ = strings.Cut(trimmed, "\n")
		trimmed = strings.TrimLeft(trimmed, " \t\n")
	}
	var done strings.Builder
	changed := false
	for rest := trimmed; ; {
		blank := len(rest) - len(strings.TrimLeft(rest, " \t"))
		end := blank + strings.IndexAny(rest[blank:]+"\n", " \t\n;&|()<>$")
		value, ok := sh.aliasValue(rest[blank:end], nil)
		if !ok {
			return done.String() + rest, changed
		}
		changed = true
		done.WriteString(rest[:blank] + value)
		rest = rest[end:]
		if !strings.HasSuffix(value, " ") {
			return done.String() + rest, true
		}
	}
}

// afterFunction takes what follows a function's body out of it: the parser takes f() { :; } && x for one function, whose
// body is { :; } && x.
func afterFunction(fn *syntax.FuncDecl) (*syntax.Stmt, bool) {
	if fn.Body == nil {
		return nil, false
	}
	list, ok := fn.Body.Cmd.(*syntax.BinaryCmd)
	if !ok {
		return nil, false
	}
	inner := *fn
	inner.Body = list.X
	first := &syntax.Stmt{Position: fn.Pos(), Cmd: &inner}
	if st, ok := afterFunction(&inner); ok {
		first = st
	}
	rest := *list
	rest.X = first
	return &syntax.Stmt{Position: fn.Pos(), Cmd: &rest}, true
}

// negatedGroup runs a command that starts with !( as the negation of a subshell, which it is without extglob.
func (sh *shell) negatedGroup(cmd *syntax.CallExpr) bool {
	if len(cmd.Args) != 1 || len(cmd.Assigns) > 0 || sh.shopt(optExtglob) {
		return false
	}
	text, ok := negation(cmd.Args[0])
	if !ok {
		return false
	}
	sh.noErr++
	defer func() { sh.noErr-- }()
	sh.runSource("( "+text+" )", 0)
	sh.status = boolStatus(sh.status != 0)
	return true
}

// negation returns the inside of a word that is !(…).
func negation(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	g, ok := w.Parts[0].(*syntax.ExtGlob)
	if !ok || g.Op != syntax.GlobExcept {
		return "", false
	}
	return g.Pattern.Value, true
}

// negatedTest reads [[ !(x) ]] as a negation, which it is without extglob.
func (sh *shell) negatedTest(w *syntax.Word) (syntax.TestExpr, bool) {
	text, ok := negation(w)
	if !ok || sh.shopt(optExtglob) {
		return nil, false
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	f, err := p.Parse(strings.NewReader("[[ ! ( "+text+" ) ]]"), "")
	if err != nil || len(f.Stmts) != 1 {
		return nil, false
	}
	test, ok := f.Stmts[0].Cmd.(*syntax.TestClause)
	if !ok {
		return nil, false
	}
	return test.X, true
}
