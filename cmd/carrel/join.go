package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
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
			"be reached. fsync returns when the server has it on its disk.\n\n" +
			"SIGTERM, Ctrl-C and 'carrel umount DIR' end it: it unmounts, pushes what is left for up to --drain, and exits with\n" +
			"0, or with 1 when something is left. That is in --state, and is pushed by the next join.",
		Flags:  append(append(remoteFlags(), mirrorFlags()...), mountOnlyFlags()...),
		Action: p.join,
	}
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
			Name: "fsync", Usage: "what fsync waits for: 'authority', the server's disk, or 'local', the mirror's", Value: "authority",
		},
		&cli.DurationFlag{Name: "drain", Usage: "push for up to `TIME` at the end", Value: 30 * time.Second},
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
	r, err := p.remote(c, url)
	if err != nil {
		return err
	}
	config := join.Config{
		Dialer: r.dialer(), Workspace: r.Workspace, Target: r.Pin.String() + "/" + r.Workspace, Agent: "carrel " + version(), Memory: c.Bool("memory"),
		Token:      func(context.Context) ([]byte, error) { return r.token, nil },
		LocalFsync: c.String("fsync") == "local", ReadOnly: c.Bool("read-only"), AllowOther: c.Bool("allow-other"),
		Drain: c.Duration("drain"), Log: slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if how := c.String("fsync"); how != "local" && how != "authority" {
		return &usageError{c, fmt.Sprintf("--fsync %s: it is 'authority' or 'local'", how)}
	}
	cache, err := humanize.ParseBytes(c.String("cache"))
	if err != nil || cache < 1<<20 {
		return &usageError{c, fmt.Sprintf("--cache %s: it is a size from 1MiB on", c.String("cache"))}
	}
	config.CacheBytes = int64(cache)
	if config.Dir, err = mountPoint(dir); err != nil {
		return err
	}
	if config.State, err = mirrorState(c, r.Addr+"/"+r.Workspace); err != nil {
		return err
	}
	if err := daemon.CheckPoint(config.State, config.Dir); err != nil {
		return err
	}
	config.Ready = func() {
		p.say("workspace %s of %s is mounted on %s; Ctrl-C unmounts it", p.shown(r.Workspace), r.Addr, config.Dir)
	}
	return p.runJoin(c.Context, config, r)
}

func (p *program) runJoin(ctx context.Context, config join.Config, r *remote) error {
	made, err := makePoint(config.Dir)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	err = join.Run(ctx, config)
	if err != nil && made {
		_ = os.Remove(config.Dir) // it stays when somebody uses it meanwhile
	}
	switch {
	case errors.Is(err, join.ErrLeft):
		return told(err, "It is in %s, and is pushed by the next join with this state.", config.State)
	case errors.Is(err, join.ErrOther):
		return told(err, "Name another state: --state DIR.")
	case errors.Is(err, vfs.ErrInUse):
		return told(err, "Another join has it. Name another state: --state DIR.")
	case err != nil:
		return r.explain(err)
	}
	return nil
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
