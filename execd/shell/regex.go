package shell

import (
	"context"
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// regexTest is [[ string =~ word ]]: it sets BASH_REMATCH.
func (sh *shell) regexTest(s string, w *syntax.Word) int {
	pieces := sh.pieces(nil, w.Parts, mode{noSplit: true, noTilde: true})
	text := regexText(w, pieces)
	sh.traceTest(quoteTrace(s) + " =~ " + text)
	re, err := sh.regex(text, sh.shopt(optNocasematch))
	if err != nil {
		_ = sh.setList("BASH_REMATCH", nil)
		return 2
	}
	sh.work(len(s) + len(text))
	m, err := re.Find([]byte(s))
	if err != nil {
		if sh.ctx.Err() == nil && errors.Is(err, regex.ErrCost) {
			sh.fatalf("regular expression: %v", err)
		}
		sh.stop()
	}
	var groups []string
	for i := 0; i+1 < len(m); i += 2 {
		if m[i] < 0 {
			groups = append(groups, "")
			continue
		}
		groups = append(groups, s[m[i]:m[i+1]])
	}
	_ = sh.setList("BASH_REMATCH", groups)
	return boolStatus(m != nil)
}

// regexText makes an expression of pieces: what was quoted means itself.
func regexText(w *syntax.Word, pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		switch p.kind {
		case boundary:
			b.WriteByte(' ')
		case quoted:
			b.WriteString(regexQuote(p.text))
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func regexQuote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// regex compiles an extended regular expression. A script whose expression is not made for an automaton pays by steps.
func (sh *shell) regex(text string, fold bool) (*regex.Regexp, error) {
	if len(text) > maxRegex {
		return nil, errors.New("regular expression too big")
	}
	if text != "" && strings.IndexByte("{*+?", text[0]) >= 0 {
		return nil, errors.New("invalid preceding regular expression")
	}
	key := patternKey{text, fold}
	sh.cache.mu.Lock()
	re := sh.cache.regexes[key]
	sh.cache.mu.Unlock()
	if re == nil {
		compiled, err := regex.Compile(text, regex.Options{Syntax: regex.Extended, Fold: fold})
		if err != nil {
			return nil, err
		}
		re = remember(sh.cache, sh.cache.regexes, key, func() *regex.Regexp { return compiled })
	}
	return re.Counting(func(n int) error {
		if sh.ctx.Err() != nil {
			return context.Cause(sh.ctx)
		}
		return sh.meter.Step(n)
	}), nil
}
