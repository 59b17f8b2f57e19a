package search

import (
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// findParser reads the expression of one find.
type findParser struct {
	*finder
	args     []string
	nested   int
	dayStart bool
}

func (f *finder) parse(args []string) error {
	p := &findParser{finder: f, args: args}
	expr := predicate(func(*found) (bool, error) { return true, nil })
	if len(args) > 0 {
		var err error
		if expr, err = p.list(); err != nil {
			return err
		}
		if len(p.args) > 0 {
			if p.args[0] == ")" {
				return f.syntaxError("you have too many ')'")
			}
			return f.syntaxError("paths must precede expression: `%s'", p.args[0])
		}
	}
	f.expr = expr
	if !f.acts {
		f.expr = both(expr, f.printer(f.Out, "\n"))
	}
	return nil
}

func both(a, b predicate) predicate {
	return func(n *found) (bool, error) {
		ok, err := a(n)
		if err != nil || !ok {
			return false, err
		}
		return b(n)
	}
}

func either(a, b predicate) predicate {
	return func(n *found) (bool, error) {
		ok, err := a(n)
		if err != nil || ok {
			return ok, err
		}
		return b(n)
	}
}

func (p *findParser) peek() string {
	if len(p.args) == 0 {
		return ""
	}
	return p.args[0]
}

func (p *findParser) accept(words ...string) bool {
	for _, w := range words {
		if len(p.args) > 0 && p.args[0] == w {
			p.args = p.args[1:]
			return true
		}
	}
	return false
}

func (p *findParser) list() (predicate, error) {
	left, err := p.or()
	for err == nil && p.accept(",") {
		var right predicate
		right, err = p.or()
		first := left
		left = func(n *found) (bool, error) {
			if _, err := first(n); err != nil {
				return false, err
			}
			return right(n)
		}
	}
	return left, err
}

func (p *findParser) or() (predicate, error) {
	left, err := p.and()
	for err == nil && p.accept("-o", "-or") {
		var right predicate
		if right, err = p.and(); err == nil {
			left = either(left, right)
		}
	}
	return left, err
}

func (p *findParser) and() (predicate, error) {
	left, err := p.not()
	for err == nil {
		explicit := p.accept("-a", "-and")
		if next := p.peek(); !explicit && (next == "" || next == ")" || next == "," || next == "-o" || next == "-or") {
			return left, nil
		}
		var right predicate
		if right, err = p.not(); err == nil {
			left = both(left, right)
		}
	}
	return left, err
}

func (p *findParser) not() (predicate, error) {
	if p.accept("!", "-not") {
		inner, err := p.not()
		return func(n *found) (bool, error) {
			ok, err := inner(n)
			return !ok, err
		}, err
	}
	if p.accept("(") {
		if p.nested++; p.nested > 200 {
			return nil, p.syntaxError("expression nested too deeply")
		}
		inner, err := p.list()
		p.nested--
		if err == nil && !p.accept(")") {
			return nil, p.syntaxError("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
		}
		return inner, err
	}
	if len(p.args) == 0 {
		return nil, p.syntaxError("expected an expression")
	}
	name := p.args[0]
	p.args = p.args[1:]
	return p.primary(name)
}

func test(f func(n *found) bool) predicate {
	return func(n *found) (bool, error) { return f(n), nil }
}

var always = test(func(*found) bool { return true })

// primary reads a test or an action without an argument, or goes on to those with one.
func (p *findParser) primary(name string) (predicate, error) {
	f := p.finder
	f.stat = f.stat || !nameOnly[name]
	switch name {
	case "-true", "-noleaf", "-mount", "-xdev", "-ignore_readdir_race", "-noignore_readdir_race", "-nowarn", "-warn":
		return always, nil
	case "-false":
		return test(func(*found) bool { return false }), nil
	case "-depth", "-d":
		f.depth = true
		return always, nil
	case "-daystart":
		p.dayStart = true
		return always, nil
	case "-follow":
		f.follow = 'L'
		return always, nil
	case "-print":
		f.acts = true
		return f.printer(f.Out, "\n"), nil
	case "-print0":
		f.acts = true
		return f.printer(f.Out, "\x00"), nil
	case "-ls":
		f.acts = true
		return f.lister(f.Out), nil
	case "-prune":
		return test(func(*found) bool { f.pruned = true; return true }), nil
	case "-quit":
		f.acts = true
		return func(*found) (bool, error) { return false, errQuit }, nil
	case "-delete":
		f.acts, f.depth = true, true
		return f.remover(), nil
	case "-empty":
		return f.empty(), nil
	case "-readable", "-writable", "-executable":
		want := map[string]uint32{"-readable": 4, "-writable": 2, "-executable": 1}[name]
		return test(func(n *found) bool { return f.FS.Access(f.ctx, n.path, want) == nil }), nil
	case "-nouser", "-nogroup":
		return test(func(n *found) bool {
			look, id := f.names.User, n.attr.UID
			if name == "-nogroup" {
				look, id = f.names.Group, n.attr.GID
			}
			_, known := look(id)
			return !known
		}), nil
	case "-exec", "-execdir", "-ok", "-okdir":
		f.acts = true
		return p.exec(name)
	}
	if !strings.HasPrefix(name, "-") {
		return nil, p.syntaxError("paths must precede expression: `%s'", name)
	}
	return p.withArgument(name)
}

// nameOnly are what needs no more of a node than a directory's entry tells.
var nameOnly = map[string]bool{
	"-true": true, "-false": true, "-print": true, "-print0": true, "-prune": true, "-quit": true, "-delete": true, "-depth": true,
	"-exec": true, "-execdir": true, "-name": true, "-iname": true, "-path": true, "-ipath": true, "-wholename": true,
	"-iwholename": true, "-regex": true, "-iregex": true, "-regextype": true, "-type": true, "-maxdepth": true,
	"-mindepth": true, "-mount": true, "-xdev": true, "-noleaf": true,
}

// findTests are the tests and actions that take one argument.
var findTests = map[string]func(p *findParser, name, arg string) (predicate, error){
	"-name": (*findParser).name, "-iname": (*findParser).name, "-path": (*findParser).path, "-ipath": (*findParser).path,
	"-wholename": (*findParser).path, "-iwholename": (*findParser).path, "-lname": (*findParser).linkName,
	"-ilname": (*findParser).linkName, "-regex": (*findParser).regex, "-iregex": (*findParser).regex,
	"-regextype": (*findParser).regexType, "-type": (*findParser).kind, "-xtype": (*findParser).kind,
	"-size": (*findParser).size, "-perm": (*findParser).perm, "-user": (*findParser).owner, "-group": (*findParser).owner,
	"-uid": (*findParser).number, "-gid": (*findParser).number, "-links": (*findParser).number, "-inum": (*findParser).number,
	"-mtime": (*findParser).age, "-atime": (*findParser).age, "-ctime": (*findParser).age, "-mmin": (*findParser).age,
	"-amin": (*findParser).age, "-cmin": (*findParser).age, "-newer": (*findParser).newer, "-anewer": (*findParser).newer,
	"-cnewer": (*findParser).newer, "-samefile": (*findParser).sameFile, "-maxdepth": (*findParser).limit,
	"-mindepth": (*findParser).limit, "-printf": (*findParser).printf, "-fstype": (*findParser).filesystem,
	"-fprint": (*findParser).toFile, "-fprint0": (*findParser).toFile, "-fls": (*findParser).toFile,
	"-fprintf": (*findParser).toFile,
}

func (p *findParser) withArgument(name string) (predicate, error) {
	read, known := findTests[name]
	if !known && len(name) == 8 && strings.HasPrefix(name, "-newer") {
		read, known = (*findParser).newer, true
	}
	if !known {
		return nil, p.syntaxError("unknown predicate `%s'", name)
	}
	if len(p.args) == 0 {
		return nil, p.syntaxError("missing argument to `%s'", name)
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return read(p, name, arg)
}

func (p *findParser) invalid(name, arg string) (predicate, error) {
	return nil, p.syntaxError("invalid argument `%s' to `%s'", arg, name)
}

func (p *findParser) name(name, arg string) (predicate, error) {
	fold := name == "-iname"
	return test(func(n *found) bool {
		base := path.Base(n.path)
		return tool.Glob(arg, base, fold)
	}), nil
}

func (p *findParser) path(name, arg string) (predicate, error) {
	fold := strings.HasPrefix(name, "-i")
	return test(func(n *found) bool { return tool.Glob(arg, n.path, fold) }), nil
}

func (p *findParser) linkName(name, arg string) (predicate, error) {
	fold := name == "-ilname"
	return test(func(n *found) bool {
		target, err := p.FS.Readlink(p.ctx, n.path)
		return err == nil && tool.Glob(arg, target, fold)
	}), nil
}

func (p *findParser) regexType(_, arg string) (predicate, error) {
	p.syntax = arg
	return always, nil
}

// regex matches whole paths. Emacs's syntax is the default: basic, with + and ? as operators.
func (p *findParser) regex(name, arg string) (predicate, error) {
	o := regex.Options{Whole: true, Fold: name == "-iregex", Step: func(n int) error { return p.Step(p.ctx, 1+n>>6) }}
	switch p.syntax {
	case "posix-extended", "posix-egrep", "egrep", "posix-awk", "awk", "gnu-awk", "posix-minimal-basic":
		o.Syntax = regex.Extended
	case "emacs", "findutils-default":
		arg = emacsToBasic(arg)
	}
	re, err := regex.Compile(arg, o)
	if err != nil {
		return nil, p.syntaxError("failed to compile regular expression '%s': %s", arg, err)
	}
	return func(n *found) (bool, error) { return re.Match([]byte(n.path)) }, nil
}

// emacsToBasic escapes the plus and question marks that are operators in Emacs.
func emacsToBasic(expr string) string {
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(expr) {
				b.WriteByte(expr[i])
			}
		case '[':
			end := strings.IndexByte(expr[min(i+2, len(expr)):], ']')
			if end < 0 {
				b.WriteString(expr[i:])
				return b.String()
			}
			b.WriteString(expr[i : i+2+end+1])
			i += 2 + end
		case '+', '?':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (p *findParser) kind(name, arg string) (predicate, error) {
	want := map[vfs.Type]bool{}
	for _, letter := range strings.Split(arg, ",") {
		t := map[string]vfs.Type{"f": vfs.TypeRegular, "d": vfs.TypeDir, "l": vfs.TypeSymlink, "p": vfs.TypeFIFO,
			"s": vfs.TypeSocket, "c": vfs.TypeCharDev, "b": vfs.TypeBlockDev}[letter]
		if t == 0 {
			return nil, p.syntaxError("Unknown argument to %s: %s", name, arg)
		}
		want[t] = true
	}
	if name == "-type" {
		return test(func(n *found) bool { return want[n.attr.Type] }), nil
	}
	return test(func(n *found) bool {
		a, err := p.FS.Stat(p.ctx, n.path)
		return err == nil && want[a.Type] || err != nil && want[vfs.TypeSymlink]
	}), nil
}

// size rounds up to the unit before it compares.
func (p *findParser) size(name, arg string) (predicate, error) {
	unit := int64(512)
	text := arg
	if text != "" {
		if i := strings.IndexByte("cwbkMG", text[len(text)-1]); i >= 0 {
			unit = []int64{1, 2, 512, 1 << 10, 1 << 20, 1 << 30}[i]
			text = text[:len(text)-1]
		}
	}
	c, err := parseComparison(text)
	if err != nil {
		return p.invalid(name, arg)
	}
	return test(func(n *found) bool { return c.holds((int64(n.attr.Size) + unit - 1) / unit) }), nil
}

func (p *findParser) perm(name, arg string) (predicate, error) {
	how := byte(0)
	text := arg
	if text != "" && (text[0] == '-' || text[0] == '/') {
		how, text = text[0], text[1:]
	}
	change, err := mode.Parse(text)
	if err != nil {
		return nil, p.syntaxError("invalid mode '%s'", arg)
	}
	want := change.Apply(0, false, 0)
	return test(func(n *found) bool {
		switch how {
		case '-':
			return n.attr.Mode&want == want
		case '/':
			return want == 0 || n.attr.Mode&want != 0
		}
		return n.attr.Mode == want
	}), nil
}

func (p *findParser) owner(name, arg string) (predicate, error) {
	look := p.names.UserID
	if name == "-group" {
		look = p.names.GroupID
	}
	id, ok := look(arg)
	if !ok {
		return nil, p.syntaxError("'%s' is not the name of a known %s", arg, strings.TrimPrefix(name, "-"))
	}
	return test(func(n *found) bool {
		if name == "-group" {
			return n.attr.GID == id
		}
		return n.attr.UID == id
	}), nil
}

func (p *findParser) number(name, arg string) (predicate, error) {
	c, err := parseComparison(arg)
	if err != nil {
		return p.invalid(name, arg)
	}
	return test(func(n *found) bool {
		switch name {
		case "-uid":
			return c.holds(int64(n.attr.UID))
		case "-gid":
			return c.holds(int64(n.attr.GID))
		case "-links":
			return c.holds(int64(n.attr.Nlink))
		}
		return c.holds(int64(n.attr.Ino))
	}), nil
}

// age counts whole days or minutes: -mtime +1 is at least two days ago.
func (p *findParser) age(name, arg string) (predicate, error) {
	c, err := parseComparison(arg)
	if err != nil {
		return p.invalid(name, arg)
	}
	unit := 24 * time.Hour
	if strings.HasSuffix(name, "min") {
		unit = time.Minute
	}
	now := p.now
	if p.dayStart {
		y, m, d := now.In(p.zone).Date()
		now = time.Date(y, m, d+1, 0, 0, 0, 0, p.zone)
	}
	return test(func(n *found) bool {
		age := now.Sub(n.when(name[1]).Go())
		if unit == time.Minute {
			// Minutes are compared as fractions: just under 60 seconds is within -1.
			minutes := age.Minutes()
			switch c.sign {
			case '+':
				return minutes > float64(c.n)
			case '-':
				return minutes < float64(c.n)
			}
			return int64(math.Ceil(minutes)) == c.n
		}
		return c.holds(int64(math.Floor(float64(age) / float64(unit))))
	}), nil
}

func (n *found) when(which byte) vfs.Time {
	switch which {
	case 'a':
		return n.attr.Atime
	case 'c':
		return n.attr.Ctime
	}
	return n.attr.Mtime
}

// newer reads -newer FILE and -newerXY REFERENCE.
func (p *findParser) newer(name, arg string) (predicate, error) {
	x, y := byte('m'), byte('m')
	switch {
	case name == "-anewer":
		x = 'a'
	case name == "-cnewer":
		x = 'c'
	case len(name) == 8:
		x, y = name[6], name[7]
	}
	if y == 't' {
		t, err := datetime.Parse(arg, p.now.In(p.zone))
		if err != nil {
			return nil, p.syntaxError("I cannot figure out how to interpret '%s' as a date or time", arg)
		}
		then := vfs.TimeOf(t)
		return test(func(n *found) bool { return n.when(x) > then }), nil
	}
	a, err := p.FS.Stat(p.ctx, arg)
	if err != nil {
		return nil, p.syntaxError("'%s': %s", arg, command.Reason(err))
	}
	then := (&found{attr: a}).when(y)
	return test(func(n *found) bool { return n.when(x) > then }), nil
}

func (p *findParser) sameFile(_, arg string) (predicate, error) {
	a, err := p.FS.Stat(p.ctx, arg)
	if err != nil {
		return nil, p.syntaxError("'%s': %s", arg, command.Reason(err))
	}
	return test(func(n *found) bool { return n.attr.Ino == a.Ino }), nil
}

func (p *findParser) limit(name, arg string) (predicate, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 0 {
		return nil, p.syntaxError("Expected a positive decimal integer argument to %s, but got '%s'", name, arg)
	}
	if name == "-maxdepth" {
		p.max = n
	} else {
		p.min = n
	}
	return always, nil
}

func (p *findParser) filesystem(_, arg string) (predicate, error) {
	return test(func(*found) bool { return arg == "fuse" || arg == "fuse.carrel" }), nil
}
