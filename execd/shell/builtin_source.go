package shell

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func (sh *shell) builtinSource(args []string) int {
	name := args[0]
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.warnf("%s: filename argument required", name)
		sh.usage(name)
		return 2
	}
	path := sh.sourcePath(args[0])
	text, err := sh.readSource(path)
	if err != nil {
		sh.warnf("%s: %s", args[0], reasonOf(err))
		return 1
	}
	sh.deeper()
	outer, source, line, offset := sh.args, sh.source, sh.line, sh.lineOffset
	sh.lineOffset = 0
	sh.calls = append(sh.calls[:len(sh.calls):len(sh.calls)], call{name: "source", source: path, line: sh.line})
	if len(args) > 1 {
		sh.args = slices.Clone(args[1:])
	}
	sh.source = path
	defer func() {
		sh.source, sh.line, sh.lineOffset = source, line, offset
		sh.calls = sh.calls[:len(sh.calls)-1]
		sh.depth--
		if len(args) > 1 {
			sh.args = outer
		}
	}()
	sh.status = 0
	sh.runSource(text, 0)
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	if sh.flow == flowNone {
		sh.returnTrap()
	}
	return sh.status
}

// sourcePath looks a name without slashes up in $PATH; the file need not be executable.
func (sh *shell) sourcePath(name string) string {
	if strings.Contains(name, "/") || !sh.shopt(optSourcepath) {
		return name
	}
	path, _ := sh.get("PATH")
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		if a, err := sh.fs().Stat(sh.ctx, joinDir(dir, name)); err == nil && a.Type == vfs.TypeRegular {
			return joinDir(dir, name)
		}
	}
	return name
}

func (sh *shell) readSource(path string) (string, error) {
	a, err := sh.fs().Stat(sh.ctx, path)
	switch {
	case err != nil:
		return "", err
	case a.Type == vfs.TypeDir:
		return "", vfs.ErrIsDir
	}
	return sh.readScript(path)
}

func (sh *shell) builtinUmask(args []string) int {
	symbolic, print := false, false
	args = args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		switch args[0] {
		case "-S":
			symbolic = true
		case "-p":
			print = true
		case "--":
		default:
			return sh.badOption("umask", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		out := fmt.Sprintf("%04o", sh.umask)
		if symbolic {
			out = symbolicUmask(sh.umask)
		}
		if print {
			if symbolic {
				out = "-S " + out
			}
			out = "umask " + out
		}
		return sh.print(out + "\n")
	}
	mask, err := parseUmask(args[0], sh.umask)
	if err != nil {
		sh.warnf("umask: %v", err)
		return 1
	}
	sh.umask = mask
	return 0
}

func symbolicUmask(mask uint32) string {
	var parts []string
	for i, who := range []string{"u", "g", "o"} {
		bits := ^mask >> (6 - 3*i) & 7
		s := who + "="
		for j, c := range "rwx" {
			if bits>>(2-j)&1 != 0 {
				s += string(c)
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ",")
}

// parseUmask reads an octal number or a symbolic mode, which says what is allowed.
func parseUmask(s string, old uint32) (uint32, error) {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		n, err := strconv.ParseUint(s, 8, 32)
		if err != nil || n > 0o777 {
			return 0, fmt.Errorf("%s: octal number out of range", s)
		}
		return uint32(n), nil
	}
	allowed := ^old & 0o777
	for _, clause := range strings.Split(s, ",") {
		i := strings.IndexAny(clause, "+-=")
		if i < 0 {
			return 0, fmt.Errorf("`%s': invalid symbolic mode operator", clause[:min(1, len(clause))])
		}
		who := uint32(0)
		for _, c := range clause[:i] {
			switch c {
			case 'u':
				who |= 0o700
			case 'g':
				who |= 0o070
			case 'o':
				who |= 0o007
			case 'a':
				who |= 0o777
			default:
				return 0, fmt.Errorf("`%c': invalid symbolic mode operator", c)
			}
		}
		if who == 0 {
			who = 0o777
		}
		bits := uint32(0)
		for _, c := range clause[i+1:] {
			switch c {
			case 'r':
				bits |= 0o444
			case 'w':
				bits |= 0o222
			case 'x':
				bits |= 0o111
			default:
				return 0, fmt.Errorf("`%c': invalid symbolic mode character", c)
			}
		}
		switch clause[i] {
		case '+':
			allowed |= bits & who
		case '-':
			allowed &^= bits & who
		case '=':
			allowed = allowed&^who | bits&who
		}
	}
	return ^allowed & 0o777, nil
}

// ulimits are the limits that ulimit knows of; those of this shell are fixed by its owner.
var ulimits = []struct {
	letter byte
	label  string
	value  func(*shell) string
}{
	{'c', "core file size              (blocks, -c)", func(*shell) string { return "0" }},
	{'d', "data seg size               (kbytes, -d)", memoryLimit},
	{'f', "file size                   (blocks, -f)", unlimited},
	{'l', "max locked memory           (kbytes, -l)", unlimited},
	{'m', "max memory size             (kbytes, -m)", memoryLimit},
	{'n', "open files                          (-n)", func(sh *shell) string { return strconv.Itoa(sh.limits.Descriptors) }},
	{'p', "pipe size                (512 bytes, -p)", func(*shell) string { return "8" }},
	{'s', "stack size                  (kbytes, -s)", func(*shell) string { return "8192" }},
	{'t', "cpu time                   (seconds, -t)", unlimited},
	{'u', "max user processes                  (-u)", func(sh *shell) string { return strconv.Itoa(sh.limits.Processes) }},
	{'v', "virtual memory              (kbytes, -v)", unlimited},
	{'x', "file locks                          (-x)", unlimited},
}

func unlimited(*shell) string { return "unlimited" }

func memoryLimit(sh *shell) string {
	if sh.limits.Memory <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(sh.limits.Memory>>10, 10)
}

// ulimitPair is a limit that the script has set. What bounds the script is its Limits; of these only the number of
// descriptors means something.
type ulimitPair struct{ soft, hard uint64 }

const noUlimit = ^uint64(0)

func (l ulimitPair) show(hard bool) string {
	n := l.soft
	if hard {
		n = l.hard
	}
	if n == noUlimit {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

func (sh *shell) setUlimit(letter byte, value string, hard, soft bool) int {
	l, ok := sh.ulimits[letter]
	if !ok {
		l = ulimitPair{noUlimit, noUlimit}
	}
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case value == "unlimited":
		n = noUlimit
	case value == "hard":
		n = l.hard
	case value == "soft":
		n = l.soft
	case err != nil:
		sh.warnf("ulimit: %s: invalid number", value)
		return 1
	}
	if n > l.hard || hard && !soft && n < l.soft {
		sh.warnf("ulimit: cannot modify limit: Operation not permitted")
		return 1
	}
	if soft {
		l.soft = n
	}
	if hard {
		l.hard = n
	}
	sh.ulimits = maps.Clone(sh.ulimits)
	if sh.ulimits == nil {
		sh.ulimits = make(map[byte]ulimitPair)
	}
	sh.ulimits[letter] = l
	return 0
}

func (sh *shell) builtinUlimit(args []string) int {
	letter := byte('f')
	var hard, soft bool
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return sh.setUlimit(letter, a, hard || !soft, soft || !hard)
		}
		for _, c := range a[1:] {
			switch c {
			case 'H':
				hard = true
			case 'S':
				soft = true
			case 'a':
				var b strings.Builder
				for _, u := range ulimits {
					fmt.Fprintf(&b, "%s %s\n", u.label, u.value(sh))
				}
				return sh.print(b.String())
			default:
				letter = byte(c)
			}
		}
	}
	for _, u := range ulimits {
		if u.letter == letter {
			if l, ok := sh.ulimits[letter]; ok {
				return sh.print(l.show(hard) + "\n")
			}
			return sh.print(u.value(sh) + "\n")
		}
	}
	return sh.badOption("ulimit", "-"+string(rune(letter)))
}
