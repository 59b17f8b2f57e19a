package shell

import "slices"

// options are what set -o and shopt switch.
type options struct {
	set   uint32
	shopt uint64
}

// Options of set -o, by their place in setNames.
const (
	optAllexport = iota
	optBraceexpand
	optEmacs
	optErrexit
	optErrtrace
	optFunctrace
	optHashall
	optHistexpand
	optHistory
	optIgnoreeof
	optInteractiveComments
	optKeyword
	optMonitor
	optNoclobber
	optNoexec
	optNoglob
	optNolog
	optNotify
	optNounset
	optOnecmd
	optPhysical
	optPipefail
	optPosix
	optPrivileged
	optVerbose
	optVi
	optXtrace
)

var setNames = []string{
	"allexport", "braceexpand", "emacs", "errexit", "errtrace", "functrace", "hashall", "histexpand", "history",
	"ignoreeof", "interactive-comments", "keyword", "monitor", "noclobber", "noexec", "noglob", "nolog", "notify",
	"nounset", "onecmd", "physical", "pipefail", "posix", "privileged", "verbose", "vi", "xtrace",
}

// setLetters are the options that set has a letter for, in the order of $-.
var setLetters = []struct {
	letter byte
	opt    int
}{
	{'a', optAllexport}, {'b', optNotify}, {'e', optErrexit}, {'f', optNoglob}, {'h', optHashall}, {'k', optKeyword},
	{'m', optMonitor}, {'n', optNoexec}, {'p', optPrivileged}, {'t', optOnecmd}, {'u', optNounset}, {'v', optVerbose},
	{'x', optXtrace}, {'B', optBraceexpand}, {'C', optNoclobber}, {'E', optErrtrace}, {'H', optHistexpand},
	{'P', optPhysical}, {'T', optFunctrace},
}

var shoptNames = []string{
	"autocd", "assoc_expand_once", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist",
	"compat31", "compat32", "compat40", "compat41", "compat42", "compat43", "compat44", "complete_fullquote",
	"direxpand", "dirspell", "dotglob", "execfail", "expand_aliases", "extdebug", "extglob", "extquote", "failglob",
	"force_fignore", "globasciiranges", "globskipdots", "globstar", "gnu_errfmt", "histappend", "histreedit",
	"histverify", "hostcomplete", "huponexit", "inherit_errexit", "interactive_comments", "lastpipe", "lithist",
	"localvar_inherit", "localvar_unset", "login_shell", "mailwarn", "no_empty_cmd_completion", "nocaseglob",
	"nocasematch", "noexpand_translation", "nullglob", "patsub_replacement", "progcomp", "progcomp_alias",
	"promptvars", "restricted_shell", "shift_verbose", "sourcepath", "varredir_close", "xpg_echo",
}

// Options of shopt that change what the shell does.
var (
	optDotglob          = slices.Index(shoptNames, "dotglob")
	optExecfail         = slices.Index(shoptNames, "execfail")
	optExpandAliases    = slices.Index(shoptNames, "expand_aliases")
	optExtdebug         = slices.Index(shoptNames, "extdebug")
	optExtglob          = slices.Index(shoptNames, "extglob")
	optFailglob         = slices.Index(shoptNames, "failglob")
	optGlobskipdots     = slices.Index(shoptNames, "globskipdots")
	optGlobstar         = slices.Index(shoptNames, "globstar")
	optInheritErrexit   = slices.Index(shoptNames, "inherit_errexit")
	optLastpipe         = slices.Index(shoptNames, "lastpipe")
	optLocalvarInherit  = slices.Index(shoptNames, "localvar_inherit")
	optNocaseglob       = slices.Index(shoptNames, "nocaseglob")
	optNocasematch      = slices.Index(shoptNames, "nocasematch")
	optNullglob         = slices.Index(shoptNames, "nullglob")
	optPatsub           = slices.Index(shoptNames, "patsub_replacement")
	optShiftVerbose     = slices.Index(shoptNames, "shift_verbose")
	optSourcepath       = slices.Index(shoptNames, "sourcepath")
	optXpgEcho          = slices.Index(shoptNames, "xpg_echo")
	defaultShoptEnabled = []string{
		"checkwinsize", "cmdhist", "complete_fullquote", "extquote", "force_fignore", "globasciiranges",
		"globskipdots", "hostcomplete", "interactive_comments", "patsub_replacement", "progcomp", "promptvars",
		"sourcepath",
	}
)

func defaultOptions() options {
	o := options{set: 1<<optBraceexpand | 1<<optHashall | 1<<optInteractiveComments}
	for _, name := range defaultShoptEnabled {
		o.shopt |= 1 << slices.Index(shoptNames, name)
	}
	return o
}

// on reports whether an option of set -o is on.
func (sh *shell) on(opt int) bool { return sh.opts.set>>opt&1 != 0 }

// shopt reports whether an option of shopt is on.
func (sh *shell) shopt(opt int) bool { return sh.opts.shopt>>opt&1 != 0 }

func (o *options) switchSet(opt int, on bool) {
	o.set &^= 1 << opt
	if on {
		o.set |= 1 << opt
	}
}

func (o *options) switchShopt(opt int, on bool) {
	o.shopt &^= 1 << opt
	if on {
		o.shopt |= 1 << opt
	}
}

// flags is $-.
func (sh *shell) flags() string {
	var b []byte
	for _, l := range setLetters {
		if sh.on(l.opt) {
			b = append(b, l.letter)
		}
	}
	if sh.interactive {
		b = append(b, 'i')
	}
	return string(append(b, 'c'))
}
