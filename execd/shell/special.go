package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// bashVersion is what the shell says it is: the version that it follows.
var bashVersion = []string{"5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"}

// specials are the variables that are computed when they are read.
var specials = map[string]*special{
	"RANDOM":          {get: (*shell).nextRandom, assign: (*shell).seedRandom},
	"SRANDOM":         {get: func(sh *shell) string { return strconv.FormatUint(sh.randomUint64()>>32, 10) }},
	"SECONDS":         {get: (*shell).elapsed, assign: (*shell).setElapsed},
	"LINENO":          {get: func(sh *shell) string { return strconv.Itoa(sh.line) }},
	"BASHPID":         {get: func(sh *shell) string { return strconv.Itoa(sh.proc.pid) }},
	"BASH_SUBSHELL":   {get: func(sh *shell) string { return strconv.Itoa(sh.subshells) }},
	"BASH_COMMAND":    {get: (*shell).commandText},
	"EPOCHSECONDS":    {get: func(sh *shell) string { return strconv.FormatInt(sh.cfg.Now().Unix(), 10) }},
	"EPOCHREALTIME":   {get: (*shell).realtime},
	"BASH_ARGV0":      {get: func(sh *shell) string { return sh.name }, assign: (*shell).setName},
	"FUNCNAME":        {list: (*shell).functionStack},
	"BASH_SOURCE":     {list: func(sh *shell) []string { return sh.callStack(func(c call) string { return c.source }) }},
	"BASH_LINENO":     {list: (*shell).callLines},
	"PIPESTATUS":      {list: (*shell).pipeStatuses},
	"DIRSTACK":        {list: (*shell).directoryStack},
	"GROUPS":          {list: func(sh *shell) []string { return []string{strconv.Itoa(int(sh.cfg.Cred.GID))} }},
	"COMP_WORDBREAKS": {get: func(*shell) string { return " \t\n\"'><=;|&(:" }},
	"HISTCMD":         {get: func(*shell) string { return "1" }},
}

// specialVariables returns a map that starts with what every shell has. The template is copied, which is cheap.
func specialVariables() *btree.Map[string, *variable] {
	template.Lock()
	defer template.Unlock()
	if template.vars == nil {
		template.vars = new(btree.Map[string, *variable])
		for name, s := range specials {
			template.vars.Set(name, &variable{special: s, set: true, attrs: specialAttrs(name, s)})
		}
		template.vars.Set("BASH_VERSINFO", &variable{
			attrs: attrIndexed | attrReadonly, set: true, list: indexedOf(bashVersion),
		})
	}
	return template.vars.Copy()
}

func specialAttrs(name string, s *special) attrs {
	var a attrs
	if s.list != nil {
		a |= attrIndexed
	}
	switch name {
	case "RANDOM", "SECONDS", "BASHPID", "EPOCHSECONDS", "BASH_SUBSHELL", "HISTCMD":
		a |= attrInteger
	}
	return a
}

var template struct {
	sync.Mutex
	vars *btree.Map[string, *variable]
}

// environment sets what a shell finds in its environment, and what it sets by itself.
func (sh *shell) environment(env []string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if fn, ok := strings.CutPrefix(name, "BASH_FUNC_"); ok {
			sh.importFunction(strings.TrimSuffix(fn, "%%"), value)
			continue
		}
		if isName(name) {
			v := sh.own(name)
			if v.special != nil || v.attrs&attrReadonly != 0 {
				continue
			}
			v.attrs, v.str, v.set = v.attrs|attrExport, value, true
		}
	}
	plain := func(name, value string) {
		if _, ok := sh.vars.Get(name); !ok {
			sh.vars.Set(name, &variable{gen: sh.gen, str: value, set: true})
		}
	}
	sh.vars.Set("IFS", &variable{gen: sh.gen, str: " \t\n", set: true})
	sh.vars.Set("OPTIND", &variable{gen: sh.gen, str: "1", set: true})
	sh.vars.Set("PPID", &variable{gen: sh.gen, str: "1", set: true, attrs: attrInteger | attrReadonly})
	uid := strconv.Itoa(int(sh.cfg.Cred.UID))
	sh.vars.Set("UID", &variable{gen: sh.gen, str: uid, set: true, attrs: attrInteger | attrReadonly})
	sh.vars.Set("EUID", &variable{gen: sh.gen, str: uid, set: true, attrs: attrInteger | attrReadonly})
	v := bashVersion
	plain("BASH_VERSION", fmt.Sprintf("%s.%s.%s(%s)-%s", v[0], v[1], v[2], v[3], v[4]))
	plain("BASH", "/bin/bash")
	plain("HOSTNAME", sh.cfg.Host)
	plain("HOSTTYPE", "x86_64")
	plain("MACHTYPE", v[5])
	plain("OSTYPE", "linux-gnu")
	plain("OPTERR", "1")
	plain("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	plain("PS4", "+ ")
	plain("TERM", "dumb")
	plain("IGNOREEOF", "")
	sh.vars.Delete("IGNOREEOF")
	sh.syncOptionVariables()
	if old, ok := sh.get("PWD"); !ok || old != sh.dir {
		if real, err := sh.fs().RealPath(sh.ctx, "."); err == nil {
			sh.dir = real
		}
		_ = sh.set("PWD", sh.dir)
	}
	sh.own("PWD").attrs |= attrExport
	sh.own("OLDPWD").attrs |= attrExport
	n := 0
	if s, ok := sh.get("SHLVL"); ok {
		n, _ = strconv.Atoi(s)
	}
	_ = sh.set("SHLVL", strconv.Itoa(n+1))
	sh.own("SHLVL").attrs |= attrExport
	sh.vars.Delete("_") // a parameter of the shell's own
	sh.lastArg = "/bin/bash"
}

// syncOptionVariables sets SHELLOPTS and BASHOPTS, which list the options that are on.
func (sh *shell) syncOptionVariables() {
	for _, o := range []struct {
		name  string
		names []string
		on    func(int) bool
	}{{"SHELLOPTS", setNames, sh.on}, {"BASHOPTS", shoptNames, sh.shopt}} {
		var on []string
		for i, name := range o.names {
			if o.on(i) {
				on = append(on, name)
			}
		}
		slices.Sort(on)
		v := sh.own(o.name)
		v.str, v.set, v.attrs = strings.Join(on, ":"), true, v.attrs|attrReadonly
	}
}

// changed hears that a variable has another value.
func (sh *shell) changed(name string) {
	switch name {
	case "OPTIND":
		sh.getopts = getoptsState{}
	case "PATH":
		if len(sh.hashed) > 0 {
			sh.hashed = map[string]string{}
		}
	}
}

// nextRandom is the generator of bash: minimal standard, folded to 15 bits.
func (sh *shell) nextRandom() string {
	if sh.random == 0 {
		sh.random = uint32(sh.randomUint64())&0x7fffffff | 1
	}
	for last := sh.random; ; last = sh.random {
		h, l := int64(sh.random)/127773, int64(sh.random)%127773
		t := 16807*l - 2836*h
		if t < 0 {
			t += 0x7fffffff
		}
		sh.random = uint32(t)
		if out := (sh.random >> 16) ^ (sh.random & 65535); last != sh.random {
			return strconv.Itoa(int(out & 32767))
		}
	}
}

func (sh *shell) seedRandom(s string) error {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	sh.random = uint32(n)
	if sh.random == 0 {
		sh.random = 123459876
	}
	return nil
}

func (s *session) randomUint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Uint64()
}

func (sh *shell) elapsed() string {
	return strconv.FormatInt(sh.seconds+int64(sh.cfg.Now().Sub(sh.secondsAt).Seconds()), 10)
}

func (sh *shell) setElapsed(s string) error {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	sh.seconds, sh.secondsAt = n, sh.cfg.Now()
	return nil
}

func (sh *shell) setName(s string) error {
	sh.name = s
	return nil
}

func (sh *shell) realtime() string {
	now := sh.cfg.Now()
	return fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
}

func (sh *shell) pipeStatuses() []string {
	all := make([]string, len(sh.pipeStatus))
	for i, n := range sh.pipeStatus {
		all[i] = strconv.Itoa(n)
	}
	return all
}

func (sh *shell) directoryStack() []string {
	return append([]string{sh.dir}, sh.dirs...)
}

// call is a function or a sourced file that is being run.
type call struct {
	name   string // of the function; "source" for a file, "main" at the bottom
	source string // of what is run
	line   int    // where it was called
	fn     bool
}

// callStack lists the calls, the innermost first.
func (sh *shell) callStack(of func(call) string) []string {
	var all []string
	for _, c := range slices.Backward(sh.calls) {
		all = append(all, of(c))
	}
	return all
}

// functionStack is FUNCNAME: empty outside of functions, whatever file is being run.
func (sh *shell) functionStack() []string {
	if !sh.inFunction() {
		return nil
	}
	return sh.callStack(func(c call) string { return c.name })
}

func (sh *shell) callLines() []string {
	return sh.callStack(func(c call) string { return strconv.Itoa(c.line) })
}
