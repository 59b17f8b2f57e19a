package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/fusefs"
	"github.com/carrelfs/carrel/syncwire"
)

// The exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitLeft    = 3 // of a join
	exitRefused = 4 // of a join
)

// errQuiet is a failure of which everything has been said, or nothing is to be said: grep found nothing.
var errQuiet = errors.New("failed")

// exitError is the exit status of a program that ran elsewhere, to be passed on. All has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is a command line that cannot be meant.
type usageError struct {
	c    *cli.Context
	text string
}

func (e *usageError) Error() string { return e.text }

func onUsageError(c *cli.Context, err error, _ bool) error {
	return &usageError{c, flagProblem(c, err)}
}

// toldError is an error that already says what to do.
type toldError struct {
	err    error
	advice string
}

func (e *toldError) Error() string { return e.err.Error() }
func (e *toldError) Unwrap() error { return e.err }

// told gives an error its advice.
func told(err error, format string, args ...any) error {
	return &toldError{err, fmt.Sprintf(format, args...)}
}

// report says what went wrong, and what to do, and returns the exit status.
func (p *program) report(ctx context.Context, err error) int {
	var usage *usageError
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		name := commandName(usage.c)
		p.say("%s", usage.text)
		fmt.Fprintf(p.stderr, "Run '%s --help' for how it is used.\n", name)
		return exitUsage
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, errQuiet):
	case ctx.Err() != nil && isInterrupt(err):
		p.say("interrupted")
	default:
		p.say("%s", explain(err))
	}
	if s := (*statusError)(nil); errors.As(err, &s) {
		return s.status
	}
	if s := (*daemon.StatusError)(nil); errors.As(err, &s) && s.Status.Exit != 0 {
		return s.Status.Exit
	}
	return exitFailed
}

func isInterrupt(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, vfs.ErrInterrupted)
}

func commandName(c *cli.Context) string {
	if c == nil || c.Command == nil || c.Command.HelpName == "" {
		return "carrel"
	}
	return c.Command.HelpName
}

// explain is an error with, on a line of its own, what to do about it.
func explain(err error) string {
	text := err.Error()
	if a := advice(err); a != "" {
		text += "\n  " + strings.ReplaceAll(a, "\n", "\n  ")
	}
	return text
}

// advices says what to do about an error that does not say it itself. The first that fits is given.
var advices = []struct {
	err    error
	advice string
}{
	{syncwire.ErrToken, "It is unknown there, has expired, was removed, or is not for this workspace: the server's log says which.\n" +
		"'carrel token create' makes one, where the store is."},
	{syncwire.ErrRights, "'carrel token create' makes one that allows it, where the store is."},
	{syncwire.ErrClientKey, "Ask whoever runs it to add yours: 'carrel sync key FILE' prints it."},
	{syncwire.ErrFingerprint, "Somebody else answers there, or the server has a new key: ask whoever runs it for its URL."},
	{vfs.ErrKey, "Name the key file that the store was made with: --key-file FILE, or set CARREL_KEY_FILE. One that is not encrypted\n" +
		"wants none. Nothing was changed."},
	{vfs.ErrNewerFormat, "A newer version of carrel made this store: use that version. Nothing was changed."},
	{vfs.ErrCorrupt, "Nothing was changed. 'carrel check --bytes' lists all that is damaged; a store that cannot be opened\n" +
		"at all must be restored from a copy of its directory, or made anew of a backup by 'carrel load'."},
	{control.ErrVersion, "Use the version that has the store open, or end that process\n" +
		"(a mount ends by 'carrel umount DIR')."},
	{vfs.ErrInUse, "Another process has the store open and does not answer on its socket. End it, or wait for it."},
	{vfs.ErrNoWorkspace, "'carrel ws ls' lists the workspaces there are, 'carrel ws create NAME' makes one."},
	{vfs.ErrNoRevision, "'carrel log WORKSPACE' lists the revisions that are kept, 'carrel snapshot ls WORKSPACE' the snapshots."},
	{vfs.ErrWorkspaceBusy, "It is mounted, or a command works on it: unmount it first, or wait."},
	{vfs.ErrNoSpace, "Free space on the store's disk: remove files from workspaces and run 'carrel gc',\n" +
		"or make room beside the store."},
	{vfs.ErrNameTooLong, fmt.Sprintf("A name has at most %d bytes.", vfs.MaxNameLen)},
	{vfs.ErrTooBig, "A file has at most 16 TiB."},
	{fs.ErrPermission, "It belongs to another user: run this as that user or as root,\n" +
		"or name another store with --store DIR."},
	{vfs.ErrClosed, "The process that had the store open has ended. Look at what was done, and run the command again."},
}

func advice(err error) string {
	if t := (*toldError)(nil); errors.As(err, &t) {
		return t.advice
	}
	if m := (*fusefs.MountError)(nil); errors.As(err, &m) && m.Advice != "" {
		return "" // its text has it
	}
	for _, a := range advices {
		if errors.Is(err, a.err) {
			return a.advice
		}
	}
	return ""
}
