package shell

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

func reasonOf(err error) string { return command.Reason(err) }

func (sh *shell) builtinCd(args []string) int {
	args = args[1:]
	physical := sh.on(optPhysical)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 'L':
				physical = false
			case 'P':
				physical = true
			case 'e', '@':
			default:
				return sh.badOption("cd", "-"+string(c))
			}
		}
	}
	if len(args) > 1 {
		sh.warnf("cd: too many arguments")
		return 1
	}
	dir, show := "", false
	switch {
	case len(args) == 0:
		home, ok := sh.get("HOME")
		if !ok {
			sh.warnf("cd: HOME not set")
			return 1
		}
		dir = home
		if dir == "" {
			return 0
		}
	case args[0] == "-":
		old, ok := sh.get("OLDPWD")
		if !ok {
			sh.warnf("cd: OLDPWD not set")
			return 1
		}
		dir, show = old, true
	default:
		dir = args[0]
	}
	if d, ok := sh.cdPath(dir); ok {
		dir, show = d, true
	}
	if status := sh.changeDir("cd", dir, physical); status != 0 {
		return status
	}
	if show {
		return sh.print(sh.dir + "\n")
	}
	return 0
}

// cdPath looks a directory up in $CDPATH.
func (sh *shell) cdPath(dir string) (string, bool) {
	list, ok := sh.get("CDPATH")
	if !ok || list == "" || dir == "" || strings.HasPrefix(dir, "/") || dir == "." || dir == ".." ||
		strings.HasPrefix(dir, "./") || strings.HasPrefix(dir, "../") {
		return "", false
	}
	for _, p := range strings.Split(list, ":") {
		if p == "" || p == "." {
			if a, err := sh.fs().Stat(sh.ctx, dir); err == nil && a.Type == vfs.TypeDir {
				return "", false
			}
			continue
		}
		full := joinDir(p, dir)
		if a, err := sh.fs().Stat(sh.ctx, full); err == nil && a.Type == vfs.TypeDir {
			return full, true
		}
	}
	return "", false
}

// changeDir moves the shell. The name of the directory is kept as it was written, unless it is asked for without
// symlinks.
func (sh *shell) changeDir(name, dir string, physical bool) int {
	full := sh.fs().Abs(dir)
	if dir == "" {
		full = sh.dir
	}
	clean := path.Clean(full)
	target := clean
	if physical {
		target = full
	}
	a, err := sh.fs().Stat(sh.ctx, target)
	if err == nil && strings.Contains(full, "..") && !physical {
		// the directories that ".." leaves must be there
		if _, e := sh.fs().Stat(sh.ctx, full); e != nil {
			err = e
		}
	}
	switch {
	case err == nil && a.Type != vfs.TypeDir:
		err = vfs.ErrNotDir
	case err == nil:
		err = sh.fs().Access(sh.ctx, target, treepath.AccessExec)
	}
	if err == nil && physical {
		clean, err = sh.fs().RealPath(sh.ctx, target)
	}
	if err != nil {
		sh.warnf("%s: %s: %s", name, dir, reasonOf(err))
		return 1
	}
	old := sh.getOr("PWD", sh.dir)
	sh.dir = clean
	for _, v := range [][2]string{{"OLDPWD", old}, {"PWD", clean}} {
		if err := sh.set(v[0], v[1]); err != nil {
			sh.warnf("%s: %v", name, err)
			return 1
		}
	}
	return 0
}

func (sh *shell) builtinPwd(args []string) int {
	dir := sh.dir
	physical := sh.on(optPhysical)
	for _, a := range args[1:] {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		case "--":
		default:
			if strings.HasPrefix(a, "-") {
				return sh.badOption("pwd", a)
			}
		}
	}
	if physical {
		real, err := sh.fs().RealPath(sh.ctx, ".")
		if err != nil {
			sh.warnf("pwd: error retrieving current directory: %s", reasonOf(err))
			return 1
		}
		dir = real
	}
	return sh.print(dir + "\n")
}

// stackNumber reads +n or -n; negative ones count from the end, -0 being the last.
func stackNumber(s string) (int, bool) {
	if len(s) < 1 {
		return 0, false
	}
	digits := s
	if s[0] == '+' || s[0] == '-' {
		digits = s[1:]
	}
	n, err := strconv.Atoi(digits)
	if err != nil || digits == "" {
		return 0, false
	}
	if s[0] == '-' {
		return -n - 1, true
	}
	return n, true
}

func (sh *shell) builtinDirs(args []string) int {
	var clear, long, lines, numbered bool
	pick, picked := 0, false
	for _, a := range args[1:] {
		if n, ok := stackNumber(a); ok && (a[0] == '+' || a[0] == '-') {
			pick, picked = n, true
			continue
		}
		if len(a) < 2 || a[0] != '-' {
			sh.warnf("dirs: %s: invalid number", a)
			sh.usage("dirs")
			return 2
		}
		for _, c := range a[1:] {
			switch c {
			case 'c':
				clear = true
			case 'l':
				long = true
			case 'p':
				lines = true
			case 'v':
				lines, numbered = true, true
			default:
				sh.warnf("dirs: -%c: invalid option", c)
				sh.usage("dirs")
				return 2
			}
		}
	}
	if clear {
		sh.dirs = nil
		return 0
	}
	stack := sh.directoryStack()
	if !long {
		for i, d := range stack {
			stack[i] = sh.shortDir(d)
		}
	}
	if picked {
		if pick < 0 {
			pick += len(stack)
		}
		if pick < 0 || pick >= len(stack) {
			sh.warnf("dirs: %s: directory stack index out of range", strings.TrimLeft(args[len(args)-1], "+-"))
			return 1
		}
		stack = stack[pick : pick+1]
	}
	if !lines {
		return sh.print(strings.Join(stack, " ") + "\n")
	}
	var b strings.Builder
	for i, d := range stack {
		if numbered {
			fmt.Fprintf(&b, "%2d  %s\n", i, d)
		} else {
			b.WriteString(d + "\n")
		}
	}
	return sh.print(b.String())
}

// shortDir writes the home directory as ~.
func (sh *shell) shortDir(d string) string {
	home := sh.getOr("HOME", "")
	if home == "" || home == "/" {
		return d
	}
	if d == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(d, home+"/"); ok {
		return "~/" + rest
	}
	return d
}

func (sh *shell) builtinPushd(args []string) int {
	args, stay := args[1:], false
	for len(args) > 0 && (args[0] == "-n" || args[0] == "--") {
		stay = stay || args[0] == "-n"
		args = args[1:]
	}
	stack := sh.directoryStack()
	if len(args) > 1 {
		sh.warnf("pushd: too many arguments")
		return 1
	}
	if len(args) == 0 {
		if len(sh.dirs) == 0 {
			sh.warnf("pushd: no other directory")
			return 1
		}
		stack[0], stack[1] = stack[1], stack[0]
		return sh.useStack("pushd", stack, stay)
	}
	if n, ok := stackNumber(args[0]); ok && (args[0][0] == '+' || args[0][0] == '-') {
		if n < 0 {
			n += len(stack)
		}
		if n < 0 || n >= len(stack) {
			sh.warnf("pushd: %s: directory stack index out of range", args[0])
			return 1
		}
		return sh.useStack("pushd", append(slices.Clone(stack[n:]), stack[:n]...), stay)
	}
	if strings.HasPrefix(args[0], "-") && args[0] != "-" {
		sh.warnf("pushd: %s: invalid number", args[0])
		sh.usage("pushd")
		return 2
	}
	dir := args[0]
	if stay {
		sh.dirs = append([]string{dir}, sh.dirs...)
		return sh.builtinDirs([]string{"dirs"})
	}
	return sh.useStack("pushd", append([]string{dir}, stack...), false)
}

func (sh *shell) builtinPopd(args []string) int {
	args, stay := args[1:], false
	for len(args) > 0 && (args[0] == "-n" || args[0] == "--") {
		stay = stay || args[0] == "-n"
		args = args[1:]
	}
	stack := sh.directoryStack()
	if len(sh.dirs) == 0 {
		sh.warnf("popd: directory stack empty")
		return 1
	}
	n := 0
	if stay {
		n = 1
	}
	if len(args) > 0 {
		var ok bool
		if n, ok = stackNumber(args[0]); !ok || args[0][0] != '+' && args[0][0] != '-' {
			sh.warnf("popd: %s: invalid argument", args[0])
			sh.usage("popd")
			return 2
		}
		if n < 0 {
			n += len(stack)
		}
		if n < 0 || n >= len(stack) {
			sh.warnf("popd: %s: directory stack index out of range", args[0])
			return 1
		}
	}
	if n == 0 {
		return sh.useStack("popd", stack[1:], false)
	}
	return sh.useStack("popd", slices.Delete(slices.Clone(stack), n, n+1), true)
}

// useStack makes a list the directory stack: the shell moves to its first.
func (sh *shell) useStack(name string, stack []string, stay bool) int {
	rest := slices.Clone(stack[1:])
	if !stay || stack[0] != sh.dir {
		if status := sh.changeDir(name, stack[0], false); status != 0 {
			return status
		}
	}
	sh.dirs = rest
	return sh.builtinDirs([]string{"dirs"})
}
