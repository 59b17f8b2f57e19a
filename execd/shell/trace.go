package shell

import (
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// trace writes a line of set -x: $PS4, its first character once for each level of substitution, and the command.
func (sh *shell) trace(text string) {
	_, _ = io.WriteString(sh.traceTo(), sh.tracePrefix()+text+"\n")
}

func (sh *shell) traceTo() end {
	if s, ok := sh.get("BASH_XTRACEFD"); ok {
		if n, ok := plainNumber(s); ok && sh.fds.get(int(n)) != nil {
			return end{sh.ctx, sh.fds.get(int(n))}
		}
	}
	return sh.stderr()
}

func (sh *shell) tracePrefix() string {
	ps4 := sh.getOr("PS4", "")
	if ps4 == "" {
		return ""
	}
	sh.opts.switchSet(optXtrace, false)
	defer sh.opts.switchSet(optXtrace, true)
	status, subst := sh.status, sh.substDone
	if a := sh.catch(func() { ps4 = sh.prompt(ps4) }); a != nil {
		ps4 = "+ "
	}
	sh.status, sh.substDone = status, subst
	if ps4 == "" {
		return ""
	}
	first := string([]rune(ps4)[:1])
	return strings.Repeat(first, sh.traceDepth) + ps4
}

// traceCommand traces a simple command, after the assignments before it.
func (sh *shell) traceCommand(assigns, args []string) {
	if !sh.on(optXtrace) {
		return
	}
	for _, a := range assigns {
		sh.trace(a)
	}
	sh.trace(quoteAll(args))
}

// commandText is BASH_COMMAND.
func (sh *shell) commandText() string {
	if sh.commandNode == nil {
		return ""
	}
	p := sourcePrinter{}
	switch c := sh.commandNode.(type) {
	case *syntax.ForClause:
		p.forHead(c)
	case *syntax.CaseClause:
		p.caseHead(c)
	default:
		p.stmt(&syntax.Stmt{Cmd: c, Redirs: sh.commandRedirs})
	}
	return p.b.String()
}

// wordText is a word as the script spells it, for messages.
func wordText(w *syntax.Word) string { return printNode(w) }
