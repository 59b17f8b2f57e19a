package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
)

// outputSize is the size of the output buffer: that of a pipe's, so that a reader gets what it can hold at once.
const outputSize = 64 << 10

// Exit ends a body with a status and without a word.
type Exit int

// Error implements error.
func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Body is what a command does.
type Body func(ctx context.Context, c *Call) error

// Call is one run of a command.
type Call struct {
	*command.Process
	Name    string        // the last part of Args[0], for what behaves by its name
	Out     *bufio.Writer // to Stdout
	Opening string        // how Each says that a file cannot be opened: "cannot open '%s' for reading"; "" for its name alone
	Status  int           // what the command returns unless an error ends it
	memory  int64         // bytes taken from the Meter
}

// Command makes a command of a body.
func Command(body Body) command.Func {
	return func(ctx context.Context, p *command.Process) int {
		c := &Call{Process: p, Name: path.Base(p.Args[0]), Out: bufio.NewWriterSize(p.Stdout, outputSize)}
		err := body(ctx, c)
		if flushed := c.Out.Flush(); flushed != nil {
			err = flushed
		}
		if c.memory != 0 {
			_ = c.Meter.Memory(-c.memory)
		}
		return c.end(ctx, err)
	}
}

func (c *Call) end(ctx context.Context, err error) int {
	var exit Exit
	switch {
	case err == nil:
		return c.Status
	case errors.As(err, &exit):
		return int(exit)
	case ctx.Err() != nil, errors.Is(err, command.ErrPipe):
		return c.Fail(ctx, err)
	}
	c.Say("%s", command.Reason(err))
	return max(c.Status, 1)
}

// Say writes "name: message" and a newline to Stderr.
func (c *Call) Say(format string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Args[0], fmt.Sprintf(format, args...))
}

// Fault is Say, and makes the command return at least 1.
func (c *Call) Fault(format string, args ...any) {
	c.Say(format, args...)
	c.Status = max(c.Status, 1)
}

// FaultAt is Fault for an error about a file, except for the end of the command, which it returns.
func (c *Call) FaultAt(ctx context.Context, name string, err error) error {
	if Ends(ctx, err) {
		return err
	}
	c.Fault("%s: %s", name, command.Reason(err))
	return nil
}

// Ends says whether an error is no reason to go on with the next file.
func Ends(ctx context.Context, err error) bool {
	var exit Exit
	return ctx.Err() != nil || errors.As(err, &exit) || errors.Is(err, command.ErrPipe) ||
		errors.Is(err, command.ErrSteps) || errors.Is(err, command.ErrMemory) || errors.Is(err, command.ErrOutput)
}

// Usage says what is wrong with the arguments, and returns the Exit for it.
func (c *Call) Usage(status int, format string, args ...any) error {
	c.Say(format, args...)
	fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Args[0])
	return Exit(status)
}

// Die says something and returns an Exit.
func (c *Call) Die(status int, format string, args ...any) error {
	c.Say(format, args...)
	return Exit(status)
}

// Options parses the arguments. What is wrong with them is said, and an Exit with status returned.
func (c *Call) Options(p *getopt.Parser, status int) ([]getopt.Option, []string, error) {
	options, operands, err := p.Parse(c.Args[1:])
	if about := c.About(p, err); about != nil {
		return nil, nil, about
	}
	if err != nil {
		return nil, nil, c.Usage(status, "%s", err)
	}
	return options, operands, nil
}

// Knows returns what says of arguments which option a parser has not.
func Knows(p *getopt.Parser) func(args []string) error {
	return func(args []string) error {
		_, _, err := p.Parse(args)
		return err
	}
}

// Aside runs a part of a body that has nothing left of the memory that it took, which is given back.
func (c *Call) Aside(part func() error) error {
	before := c.memory
	err := part()
	if more := c.memory - before; more > 0 {
		c.memory = before
		_ = c.Meter.Memory(-more) // which is never too much
	}
	return err
}

// Take counts n bytes of memory, which the end of the command gives back.
func (c *Call) Take(n int64) error {
	c.memory += n
	return c.Meter.Memory(n)
}
