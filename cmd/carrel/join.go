package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
)

// memoryDir is where tmpfs is on every Linux.
const memoryDir = "/dev/shm"

func (p *program) joinCommand() *cli.Command {
	return &cli.Command{
		Name:      "join",
		Usage:     "mount a workspace of another machine, and keep it in step",
		ArgsUsage: "URL [DIR]",
		Description: "Mounts the workspace of a URL that 'carrel serve' has printed, on DIR or else on /workspace, as a mirror: it is\n" +
			"usable at once, what is written is pushed, what others write shows up, and it works on when the server cannot\n" +
			"be reached. fsync returns when the server has it on its disk. A mirror that crashes is started again by itself.\n\n" +
			"SIGTERM, Ctrl-C and 'carrel umount DIR' end it: it unmounts, and pushes what is left for up to --drain. What is left then\n" +
			"is in --state, and is pushed by the next join.\n\nThe exit status:\n" + joinExitTable(),
		Flags: append(append(append(remoteFlags(), mirrorFlags()...), mountOnlyFlags()...), &cli.BoolFlag{
			Name: "detach", Usage: "join in the background; the log is daemon.log in --state",
		}),
		Action: p.join,
	}
}

// joinExits are the exit statuses of a join. The README has the same table.
var joinExits = []struct {
	status  int
	meaning string
}{
	{exitDone, "it was ended, and everything is pushed"},
	{exitFailed, "it could not be made, or go on"},
	{exitUsage, "the command line is wrong"},
	{exitLeft, "it was ended, and something is left to be pushed"},
	{exitRefused, "the server did not let it in, or is not the one of the URL"},
}

func joinExitTable() string {
	var b strings.Builder
	for _, x := range joinExits {
		fmt.Fprintf(&b, "  %d  %s\n", x.status, x.meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mirrorFlags are those of commands that make a mirror.
func mirrorFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "state", Usage: "keep the mirror in `DIR`", DefaultText: "carrel-mirrors/ beside the store, by server and workspace",
		},
		&cli.BoolFlag{Name: "memory", Usage: "keep the mirror in memory: what is not pushed goes with the machine"},
		&cli.StringFlag{Name: "cache", Usage: "keep up to `SIZE` of file bytes that can be fetched again", Value: "10GiB"},
		&cli.StringFlag{
			Name: "fsync", Usage: "have fsync wait for the disk of `SIDE`: authority, the server, or local, this machine", Value: "authority",
		},
		spanFlag("drain", "push for up to `TIME` at the end", 30*time.Second),
		&cli.BoolFlag{Name: "exclusive", Usage: "have no other mirror write meanwhile; read-only while another has that"},
		&cli.StringFlag{
			Name: "local", Usage: "keep paths that match `PATTERNS` on this machine: lines of a .gitignore, parted by commas",
		},
		&cli.StringFlag{
			Name: "prefetch", DefaultText: "what earlier runs have read first",
			Usage: "fetch the bytes of files before they are read: 'all', 'none', or of paths that match a `GLOB` (**/*.go)",
		},
		&cli.StringFlag{Name: "only", Usage: "show nothing but the directory `PATH` of the workspace"},
		&cli.StringFlag{
			Name: "exec-as", Usage: "run here, as `NAME`, what those send who may run things on the workspace: 'carrel exec --on NAME' at the server",
		},
	}
}

// mountOnlyFlags are those of mount that a join has too.
func mountOnlyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "refuse every change"},
		&cli.BoolFlag{
			Name: "allow-other", Usage: "let other users in, as owners and modes say", Value: os.Geteuid() == 0,
			DefaultText: "true as root",
		},
	}
}

func (p *program) join(c *cli.Context) error {
	args, err := arguments(c, 1, 2)
	if err != nil {
		return err
	}
	dir := "/workspace"
	if len(args) == 2 {
		dir = args[1]
	}
	return p.joinOn(c, args[0], dir)
}

// joinOn joins the workspace of a URL on a directory.
func (p *program) joinOn(c *cli.Context, url, dir string) error {
	j, err := p.parseJoin(c, url, dir)
	if err != nil {
		return err
	}
	made, err := makePoint(j.dir)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if c.Bool("detach") {
		err = p.joinDetached(j)
	} else {
		err = p.joinHere(c.Context, j)
	}
	if err != nil && made {
		_ = os.Remove(j.dir) // it stays when somebody uses it meanwhile
	}
	return err
}

// mirrorState is where the mirror of a workspace keeps its state: the same each time, unless it is in memory.
func mirrorState(c *cli.Context, of string) (string, error) {
	if c.Bool("memory") {
		var st unix.Statfs_t
		if err := unix.Statfs(memoryDir, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
			return "", told(fmt.Errorf("--memory: %s is no tmpfs: %w", memoryDir, errors.Join(vfs.ErrNotSupported, err)),
				"Name a directory that is: --state DIR.")
		}
		return os.MkdirTemp(memoryDir, "carrel-join-")
	}
	if dir := c.String("state"); dir != "" {
		return realPath(dir)
	}
	store, err := storeDir(c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(filepath.Dir(store), "carrel-mirrors", fmt.Sprintf("%x", sum[:8])), nil
}

// joinedAt returns the state of the join that is mounted on a directory, or, when none is named, of the only one.
func (p *program) joinedAt(c *cli.Context, args []string) (string, error) {
	entries, err := daemon.Entries()
	if err != nil {
		return "", err
	}
	dir := ""
	if len(args) == 1 {
		if dir, err = mountPoint(args[0]); err != nil {
			return "", err
		}
	}
	var found []string
	for _, e := range entries {
		_, state := e.Workspace()
		if e.Ours() && join.Runs(state) && (dir == "" || e.Dir == dir) {
			found = append(found, state)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return "", told(fmt.Errorf("no joined workspace is mounted%s: %w", onDir(dir), vfs.ErrNotExist),
			"'carrel join URL DIR' does that.")
	}
	return "", &usageError{c, "which one? Name the directory: " + strings.Join(found, ", ")}
}

func onDir(dir string) string {
	if dir == "" {
		return ""
	}
	return " on " + dir
}
