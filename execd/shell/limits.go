package shell

import (
	"errors"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// Limits bounds what one script may use. A zero field takes the value of DefaultLimits; a negative one is no bound.
type Limits struct {
	Time        time.Duration // of the wall clock
	Steps       int64         // commands, loop rounds and units of work of commands (command.Process.Step)
	Output      int64         // bytes to Stdout and Stderr of the Config together
	Memory      int64         // bytes of variables and of what is being expanded, in all subshells together
	Descriptors int           // open at once in one shell; past it open fails with "Too many open files", as in bash
	Recursion   int           // functions, sourced files, evals and subshells within each other
	Processes   int           // subshells and commands at once
}

// DefaultLimits are what a script gets that asks for nothing else: far above what scripts need, far below what would
// hurt the daemon.
func DefaultLimits() Limits {
	return Limits{
		Time:        10 * time.Minute,
		Steps:       2_000_000_000,
		Output:      256 << 20,
		Memory:      256 << 20,
		Descriptors: 1024, // ulimit -n of most systems
		Recursion:   1000, // a level of it is some kilobytes of stack
		Processes:   4096, // ulimit -u of small systems
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	pick := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	pick(&l.Steps, d.Steps)
	pick(&l.Output, d.Output)
	pick(&l.Memory, d.Memory)
	pickInt(&l.Descriptors, d.Descriptors)
	pickInt(&l.Recursion, d.Recursion)
	pickInt(&l.Processes, d.Processes)
	if l.Time == 0 {
		l.Time = d.Time
	}
	return l
}

func pickInt(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

// bounds of a single operation. They keep one step from being a large one; the meter counts the rest.
const (
	maxBraceWords  = 1 << 20  // words that one brace expansion makes
	maxGlobMatches = 1 << 20  // names that one pattern finds
	maxRegex       = 64 << 10 // bytes of a regular expression; RE2 takes time in proportion to it
	maxArithDepth  = 200      // of parentheses and of variables that name expressions
	maxSourceSize  = 64 << 20 // bytes of a script
	maxAliasRounds = 1000     // substitutions in one line
	maxKeyRepairs  = 100      // subscripts in a script that the parser refuses; each is a parse of its own
	maxHeres       = 100      // here-documents that are looked at for one without an end
	maxSurveySize  = 1 << 20  // bytes of a script that is looked over before it runs
	maxSurveyDepth = 10       // of scripts within scripts there
)

// Errors that end a script, each with an exit status of its own. Those of the meter are in package command.
var (
	ErrTime      = errors.New("time limit reached")
	ErrRecursion = errors.New("too much recursion: limit reached")
	ErrProcesses = errors.New("too many processes: limit reached")
	ErrKilled    = errors.New("killed")
)

// limitStatus is the exit status of a script that an error of a limit has ended: 124 for time, as timeout(1) has it, and
// below it for the others. 137 is a kill from outside.
func limitStatus(err error) int {
	for _, s := range []struct {
		err    error
		status int
	}{
		{ErrTime, 124}, {command.ErrSteps, 123}, {command.ErrOutput, 122}, {command.ErrMemory, 121},
		{ErrRecursion, 120}, {ErrProcesses, 119},
	} {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return command.StatusKilled
}
