package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/carrelfs/carrel/casstore/lookback"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/subtree"
	"github.com/carrelfs/carrel/fusefs"
	"github.com/carrelfs/carrel/mirror"
	"github.com/carrelfs/carrel/syncwire"
)

// Config says what to join.
type Config struct {
	Dialer    syncwire.Dialer
	Workspace string
	Target    string // what the state is of: the server's key and the workspace. Another state is refused
	Token     func(context.Context) ([]byte, error)
	Agent     string
	Dir       string // to mount on, absolute and without symlinks
	State     string // the mirror's, the same; made when there is none
	Passing   bool   // State goes when everything is pushed

	CacheBytes int64
	LocalFsync bool
	ReadOnly   bool
	AllowOther bool
	Exclusive  bool          // no other mirror writes meanwhile
	Local      []string      // paths that stay here: mirror.Config.Local
	Prefetch   string        // mirror.Config.Prefetch
	Only       string        // the directory of the workspace that is mounted; empty for its root
	Machine    string        // the name by which this machine runs what others send; empty when it does not
	Drain      time.Duration // how long is pushed at the end
	Log        *slog.Logger
	Ready      func() // called when the mount is usable
}

// ErrOther is for a state that is of another workspace: the two trees would be merged.
var ErrOther = errors.New("the state is of another workspace")

// claim notes what a state is of, and refuses one that is of something else.
func claim(state, target string) error {
	file := filepath.Join(state, "target")
	b, err := os.ReadFile(file)
	switch {
	case err == nil && string(b) != target:
		return fmt.Errorf("%s: %w: %s", state, ErrOther, b)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return renameio.WriteFile(file, []byte(target), 0o600, renameio.WithTempDir(state))
}

// connectPatience is how long the server may take to let a mirror in that has nothing yet. One that has works without.
const connectPatience = 15 * time.Second

// session is a join that runs.
type session struct {
	config Config
	client *syncwire.Client
	mirror *mirror.Mirror
	server *fusefs.Server
	runner *runner
	leave  context.CancelFunc // ends it
}

// Run joins, and returns when ctx has ended or the mount has gone, and everything is pushed or is not to be had. An error
// that wraps ErrLeft says that some is left.
func Run(ctx context.Context, c Config) error {
	id, err := mirror.Identity(c.State)
	if err == nil {
		err = claim(c.State, c.Target)
	}
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	s := &session{config: c, client: syncwire.NewClient(syncwire.ClientConfig{
		Dialer: c.Dialer, Workspace: c.Workspace, Mirror: id, Token: c.Token, Agent: c.Agent, Log: c.Log,
	})}
	if err := s.admitted(ctx); err != nil {
		return errors.Join(err, s.client.Close())
	}
	s.mirror, err = mirror.Open(ctx, mirror.Config{
		Dir: c.State, Peer: s.client, Name: hostName(), CacheBytes: c.CacheBytes, LocalFsync: c.LocalFsync,
		ReadOnly: s.config.ReadOnly, Local: c.Local, Prefetch: c.Prefetch, Exclusive: c.Exclusive,
		Log: c.Log,
	})
	if err != nil {
		return errors.Join(err, s.client.Close())
	}
	s.mirror.AwaitWriter()
	err = s.serve(ctx)
	left := s.drain()
	err = errors.Join(err, s.mirror.Close(), s.client.Close(), left)
	if c.Passing && left == nil {
		err = errors.Join(err, os.RemoveAll(c.State))
	}
	return err
}

// admitted sees whether the server lets us in, and what we may do there. A mirror that has its state goes on without the
// server; one that begins cannot.
func (s *session) admitted(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	w, err := s.client.Welcome(wait)
	switch {
	case err == nil:
		s.config.ReadOnly = s.config.ReadOnly || w.Rights&syncwire.RightWrite == 0
		if s.config.Machine != "" && !w.Rights.Has(syncwire.RightExec) {
			return fmt.Errorf("join: run what others send: %w", syncwire.ErrRights)
		}
		return nil
	case errors.Is(err, vfs.ErrInterrupted) && known(s.config.State):
		s.config.Log.Warn("the server does not answer; working with what is here", "err", err)
		return nil
	case s.client.Stats().Err != nil && wait.Err() != nil:
		err = s.client.Stats().Err // why, rather than that time is over
	}
	return fmt.Errorf("join: %w", err)
}

// known reports whether a state is there of an earlier join.
func known(state string) bool {
	_, err := os.Stat(filepath.Join(state, "store"))
	return err == nil
}

// hostName stands in the names of conflicting copies.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || len(name) > 32 || vfs.CheckName(name) != nil {
		return ""
	}
	return name
}

// serve mounts, and waits for the end. The mount is gone when it returns.
func (s *session) serve(ctx context.Context) error {
	c := &s.config
	if err := fusefs.CleanDead(c.Dir); err != nil {
		return err
	}
	ctx, s.leave = context.WithCancel(ctx)
	defer s.leave()
	tree, err := subtree.Open(ctx, s.mirror.Presented(), c.Only)
	if err != nil {
		return err
	}
	shown := lookback.New(tree, lookback.PastOf(s.mirror.Tree(), s.mirror.Known))
	defer shown.Close() // nothing is open: a mirror has no snapshots
	s.server, err = fusefs.Mount(c.Dir, shown, fusefs.Options{
		Name: c.Workspace + "@" + c.State, ReadOnly: c.ReadOnly, AllowOther: c.AllowOther, Logger: c.Log,
	})
	if err != nil {
		return err
	}
	s.runner, err = newRunner(s)
	if err != nil {
		return errors.Join(err, s.server.Unmount(ctx))
	}
	sock, err := listen(s)
	if err != nil {
		return errors.Join(err, s.runner.close(), s.server.Unmount(ctx))
	}
	ended := make(chan error, 1)
	go func() { ended <- s.server.Wait() }()
	c.Ready()
	select {
	case err = <-ended:
		err = errors.Join(err, s.runner.close())
	case <-ctx.Done():
		// First what runs: what it has written is to be pushed.
		err = errors.Join(s.runner.close(), s.server.Unmount(context.WithoutCancel(ctx)), <-ended)
	}
	return errors.Join(err, sock.close())
}

// ErrLeft is for what could not be pushed.
var ErrLeft = errors.New("not everything is pushed")

// drain pushes what is not pushed yet.
func (s *session) drain() error {
	if s.config.ReadOnly {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Drain)
	defer cancel()
	err := s.mirror.Push(ctx)
	if err == nil {
		return nil
	}
	st, statusErr := s.mirror.Status(context.Background())
	return fmt.Errorf("%w: %d records are left: %w", ErrLeft, st.Pending, errors.Join(err, statusErr))
}
