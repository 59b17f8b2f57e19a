package shell

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"
	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// Config is what a script is started with.
type Config struct {
	Tree vfs.Tree
	Root vfs.Ino // what the script sees as "/"; zero for the tree's root
	// KeepTmp leaves /tmp to the tree. Without it, /tmp is in memory and gone with the script, as large as Limits.Memory.
	KeepTmp bool

	Dir string // working directory, absolute; empty for "/"
	Env []string

	Name string   // $0; empty for "bash"
	File bool     // the source is that of the file Name, as in "bash file"; else as in "bash -c source"
	Args []string // $1 and on

	// Stdin may be nil for an empty one. A Read of it should end when the context of Run does: Run waits for it.
	Stdin          io.Reader
	Stdout, Stderr io.Writer // nil for nowhere; never written to by two goroutines at once

	Cred     treepath.Cred
	User     string // name of Cred.UID; empty for "root" or "user"
	Host     string // empty for "carrel"
	Umask    uint32 // zero for 022
	Commands command.Table
	Limits   Limits
	Now      func() time.Time // nil for the system's clock
	Seed     uint64           // of $RANDOM and of the commands' randomness; zero for a random one

	// Linger is how long jobs in the background may go on after the script's end, as they do when somebody reads on the
	// other end of bash's output. Zero for a second.
	Linger time.Duration
}

// session is one Run: what all its shells share.
type session struct {
	cfg    Config
	limits Limits
	meter  *command.Meter
	life   context.Context         // of all of the script
	kill   context.CancelCauseFunc // ends it
	view   *view
	cache  *cache
	start  time.Time

	gens    atomic.Uint64
	pids    atomic.Int64
	running sync.WaitGroup // every goroutine of the script

	mu    sync.Mutex // guards what follows
	procs map[int]*process
	rng   *rand.Rand
}

// shell is one execution environment: the script's own, or a copy of it in a subshell. It belongs to one goroutine.
type shell struct {
	*session
	ctx     context.Context // the life of this virtual process; every wait of it ends with ctx
	base    context.Context // the life of what outlives it: its jobs and open files
	proc    *process
	mainPID int

	gen    uint64 // which shell may change a variable in place
	vars   *btree.Map[string, *variable]
	funcs  *btree.Map[string, *function]
	alias  *btree.Map[string, string]
	frames []*frame
	calls  []call
	fds    descriptors
	hashed map[string]string

	name   string   // $0
	args   []string // $1 and on
	dir    string
	dirs   []string // below the top of the directory stack
	umask  uint32
	opts   options
	traps  traps
	jobs   *jobTable
	lastBg int

	status      int
	pipeStatus  []int
	subFDs      []int // descriptors of process substitutions, closed after the command
	substDone   bool  // a command substitution has run in this command: its status is the assignment's
	flow        flow
	flowCount   int // loops still to leave
	loops       int
	noErr       int    // depth of places where a failure is no error
	refused     string // of a command.Process, for the command that is started next
	depth       int    // of calls, sources, evals and forks
	subshells   int
	traceDepth  int // of substitutions and evals, for set -x
	line        int
	lineOffset  int    // of a text that does not start on the first line: that of eval or a trap
	source      string // what the line is in, for messages
	lastArg     string
	history     history
	disabled    map[string]bool // builtins put aside by enable -n; never changed in place
	compSpecs   map[string]string
	ulimits     map[byte]ulimitPair // never changed in place
	getopts     getoptsState
	mem         int64 // what this shell has charged to the meter
	secondsAt   time.Time
	seconds     int64
	random      uint32
	inTrap      int
	atExit      *int // in the EXIT trap: the status before it, which exit gives too
	errDepth    int  // of ERR traps that are being run
	debugDepth  int
	inReturn    bool
	interactive bool
	unwritten   bool           // output of the builtin that is being run was lost
	noAliases   int            // depth of texts in which aliases are not replaced
	trapFrames  map[string]int // depth of calls at which a trap was set

	commandNode   syntax.Command     // BASH_COMMAND, as a tree
	commandRedirs []*syntax.Redirect // and what it has of them
	piped         bool               // a part of a pipeline or a job: SIGPIPE ends it
}

// flow says that commands are being left.
type flow uint8

const (
	flowNone flow = iota
	flowBreak
	flowContinue
	flowReturn
	flowExit
)

// Run runs a script and returns its exit status, with an error when a limit, the context or a panic ended it. The error's
// words have also gone to Stderr.
func Run(ctx context.Context, cfg Config, source string) (status int, err error) {
	s := newSession(cfg)
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	s.life, s.kill = ctx, kill
	if s.limits.Time > 0 {
		timer := time.AfterFunc(s.limits.Time, func() { kill(ErrTime) })
		defer timer.Stop()
	}
	sh := s.newShell()
	stderr := sh.fds.get(2).retain()
	sh.protect(func() { sh.runScript(source) })
	status = sh.status
	sh.close()
	s.linger(kill)
	if err := context.Cause(ctx); err != nil && ctx.Err() != nil && err != errFinished {
		if limitStatus(err) != command.StatusKilled {
			_, _ = end{context.WithoutCancel(ctx), stderr}.Write([]byte(sh.name + ": " + err.Error() + "\n"))
		}
		return limitStatus(err), err
	}
	return status, nil
}

// linger waits for the jobs in the background, for a while.
func (s *session) linger(kill context.CancelCauseFunc) {
	d := s.cfg.Linger
	if d == 0 {
		d = time.Second
	}
	timer := time.AfterFunc(d, func() { kill(errFinished) })
	s.running.Wait()
	timer.Stop()
}

func newSession(cfg Config) *session {
	if cfg.Name == "" {
		cfg.Name = "bash"
	}
	if cfg.Dir == "" {
		cfg.Dir = "/"
	}
	if cfg.Umask == 0 {
		cfg.Umask = 0o022
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	if cfg.User == "" {
		cfg.User = "user"
		if cfg.Cred.UID == 0 {
			cfg.User = "root"
		}
	}
	if cfg.Host == "" {
		cfg.Host = "carrel"
	}
	s := &session{
		cfg: cfg, limits: cfg.Limits.orDefault(), start: cfg.Now(), cache: newCache(),
		procs: make(map[int]*process), rng: rand.New(rand.NewPCG(cfg.Seed, 1)),
	}
	s.meter = command.NewMeter(max(s.limits.Steps, 0), max(s.limits.Memory, 0), max(s.limits.Output, 0),
		func(err error) { s.kill(err) })
	s.pids.Store(int64(100 + cfg.Seed%900))
	s.view = newView(s)
	return s
}

func (s *session) newShell() *shell {
	ctx, cancel := context.WithCancelCause(s.life)
	sh := &shell{
		session: s, ctx: ctx, base: s.life, gen: s.gens.Add(1), name: s.cfg.Name, args: slices.Clone(s.cfg.Args),
		dir: s.cfg.Dir, umask: s.cfg.Umask, source: s.cfg.Name, opts: defaultOptions(), jobs: new(jobTable),
		funcs: new(btree.Map[string, *function]), alias: new(btree.Map[string, string]),
		secondsAt: s.cfg.Now(), hashed: map[string]string{},
	}
	if s.cfg.File {
		sh.calls = []call{{name: "main", source: s.cfg.Name}}
	}
	sh.proc = s.newProcess(cancel)
	sh.proc.own = true
	sh.mainPID = sh.proc.pid
	sh.vars = specialVariables()
	sh.fds.put(0, outer("stdin", orEmpty(s.cfg.Stdin), nil, s.meter))
	sh.fds.put(1, outer("stdout", nil, orDiscard(s.cfg.Stdout), s.meter))
	sh.fds.put(2, outer("stderr", nil, orDiscard(s.cfg.Stderr), s.meter))
	sh.environment(s.cfg.Env)
	return sh
}

func orEmpty(r io.Reader) io.Reader {
	if r == nil {
		return strings.NewReader("")
	}
	return r
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// rootPID is $$: the number of the script's own process.
func (sh *shell) rootPID() int { return sh.mainPID }

// fs is the shell's view of the tree, from its directory.
func (sh *shell) fs() treepath.FS {
	return treepath.FS{
		Tree: sh.view.tree, Root: sh.cfg.Root, Dir: sh.dir, Cred: sh.cfg.Cred, Umask: sh.umask, Device: sh.device,
	}
}

// fork returns a copy of the shell. Its goroutine, or the caller once it has run the copy, must close it.
func (sh *shell) fork() *shell {
	child := new(shell)
	*child = *sh
	sh.gen, child.gen = sh.gens.Add(1), sh.gens.Add(1)
	child.vars, child.funcs, child.alias = sh.vars.Copy(), sh.funcs.Copy(), sh.alias.Copy()
	child.frames, child.calls = slices.Clone(sh.frames), slices.Clip(sh.calls)
	child.dirs, child.args, child.subFDs = slices.Clip(sh.dirs), sh.args, nil
	child.fds = sh.fds.clone()
	child.traps = sh.traps.forked()
	child.jobs = sh.jobs.forked()
	child.mem, child.loops, child.inTrap, child.atExit = 0, 0, 0, nil
	child.subshells++
	child.deeper()
	return child
}

// deeper counts a level of recursion.
func (sh *shell) deeper() {
	if sh.depth++; sh.limits.Recursion > 0 && sh.depth > sh.limits.Recursion {
		sh.kill(ErrRecursion)
		sh.stop()
	}
}

// close gives back what a shell has.
func (sh *shell) close() {
	sh.fds.closeAll()
	if sh.mem > 0 {
		_ = sh.meter.Memory(-sh.mem)
	}
	sh.mem = 0
	sh.endProcess(sh.proc)
	if sh.proc.own {
		sh.proc.cancel(errFinished) // frees the context
	}
}

// step is called before every command and round of a loop: it counts, runs traps of signals that have come, and ends the
// shell when its context has.
func (sh *shell) step() {
	if sh.ctx.Err() != nil || sh.meter.Step(1) != nil {
		sh.stop()
	}
	if sh.proc.pending.Load() != 0 {
		sh.runSignals()
	}
}

// stop leaves all commands, as a signal that ends a process does.
func (sh *shell) stop() {
	panic(abort{status: sh.endStatus(), exit: true, killed: true})
}

// abort is what unwinds a shell from deep inside an expansion, to the next line of the script or to its end. What is
// wrong has been said.
type abort struct {
	status int
	exit   bool
	killed bool // as a signal does
}

// fatalf says what is wrong and gives up the line.
func (sh *shell) fatalf(format string, args ...any) {
	sh.warnf(format, args...)
	panic(abort{status: 1})
}

// exitf says what is wrong and gives up the script.
func (sh *shell) exitf(status int, format string, args ...any) {
	sh.warnf(format, args...)
	panic(abort{status: status, exit: true})
}

// catch runs f and returns what aborted it, or nil.
func (sh *shell) catch(f func()) (a *abort) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case abort:
			a = &r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// protect runs f, the whole of a shell's goroutine. An abort ends f only; so does a panic of our own making, after
// ending the script.
func (sh *shell) protect(f func()) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case abort:
			sh.status = r.status
		default:
			sh.status = command.StatusKilled
			sh.kill(fmt.Errorf("%w: internal error: %v", ErrKilled, r))
		}
	}()
	f()
}

// charge counts n bytes of variables.
func (sh *shell) charge(n int64) {
	sh.mem += n
	if sh.meter.Memory(n) != nil {
		sh.stop()
	}
}

// room ends the script when n bytes at once are more than it may have.
func (sh *shell) room(n int) {
	if sh.limits.Memory > 0 && int64(n) > sh.limits.Memory {
		sh.kill(command.ErrMemory)
		sh.stop()
	}
}

// warnf writes a message in bash's form to standard error.
func (sh *shell) warnf(format string, args ...any) {
	fmt.Fprintf(sh.stderr(), "%s: line %d: %s\n", sh.source, sh.line, fmt.Sprintf(format, args...))
}

func (sh *shell) stdin() end  { return end{sh.ctx, sh.fds.get(0)} }
func (sh *shell) stdout() end { return end{sh.ctx, sh.fds.get(1)} }
func (sh *shell) stderr() end { return end{sh.ctx, sh.fds.get(2)} }
