package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
	"github.com/carrelfs/carrel/mirror"
	"github.com/carrelfs/carrel/mirror/localpath"
	"github.com/carrelfs/carrel/syncwire"
)

// joinJob is a join that is to be made. Its daemon is started with all that it needs, and with nothing that may have gone until
// it is started again: not the file of the token, which it is told.
type joinJob struct {
	remote  *remote
	dir     string
	state   string
	passing bool // the state goes when everything is pushed
	flags   []string
}

// parseJoin puts a job together of a command line.
func (p *program) parseJoin(c *cli.Context, url, dir string) (*joinJob, error) {
	r, err := p.remote(c, url)
	if err != nil {
		return nil, err
	}
	j := &joinJob{remote: r, passing: c.Bool("memory")}
	if _, err := joinConfig(c); err != nil {
		return nil, err
	}
	if j.dir, err = mountPoint(dir); err != nil {
		return nil, err
	}
	if j.flags, err = r.flags(c); err != nil {
		return nil, err
	}
	if j.state, err = mirrorState(c, r.Addr+"/"+r.Workspace); err != nil {
		return nil, err
	}
	if err := daemon.CheckPoint(j.state, j.dir); err != nil {
		return nil, err
	}
	for _, name := range []string{"cache", "exec-as", "fsync", "local", "only", "prefetch"} {
		j.flags = append(j.flags, "--"+name+"="+c.String(name))
	}
	j.flags = append(j.flags, "--state="+j.state, fmt.Sprintf("--passing=%t", j.passing),
		fmt.Sprintf("--drain=%v", spanOf(c, "drain")), fmt.Sprintf("--read-only=%t", c.Bool("read-only")),
		fmt.Sprintf("--allow-other=%t", c.Bool("allow-other")), fmt.Sprintf("--exclusive=%t", c.Bool("exclusive")))
	return j, nil
}

// flags are those with which a daemon finds the server. Its key is in the URL; the file that it is from is named all the same, so
// that advice about it can be given.
func (r *remote) flags(c *cli.Context) (flags []string, err error) {
	if r.hosts != "" {
		flags = append(flags, "--known-hosts="+string(r.hosts))
	}
	if key := c.String("client-key"); key != "" {
		path, err := filepath.Abs(key)
		if err != nil {
			return nil, err
		}
		flags = append(flags, "--client-key="+path)
	}
	return flags, nil
}

// arguments is the command line that does the job, for the hidden commands.
func (j *joinJob) arguments(command string, more ...string) []string {
	args := append([]string{"carrel", command}, j.flags...)
	return append(append(args, more...), "--", j.remote.Target.String(), j.dir)
}

// joinConfig is what the flags say of a mirror, and how it is mounted.
func joinConfig(c *cli.Context) (join.Config, error) {
	config := join.Config{
		Agent: "carrel " + version(), State: c.String("state"), Passing: c.Bool("passing"), LocalFsync: c.String("fsync") == "local",
		ReadOnly: c.Bool("read-only"), AllowOther: c.Bool("allow-other"), Drain: spanOf(c, "drain"), Only: c.String("only"),
		Prefetch: c.String("prefetch"), Exclusive: c.Bool("exclusive"), Machine: c.String("exec-as"),
	}
	if config.Machine != "" {
		if err := machines.CheckName(config.Machine); err != nil {
			return config, &usageError{c, fmt.Sprintf("--exec-as: %v", err)}
		}
	}
	if err := mirror.CheckPrefetch(config.Prefetch); err != nil {
		return config, &usageError{c, fmt.Sprintf("--%v", err)}
	}
	if patterns := c.String("local"); patterns != "" {
		config.Local = strings.Split(patterns, ",")
	}
	if _, err := localpath.ParseRules(config.Local); err != nil {
		return config, &usageError{c, fmt.Sprintf("--local: %v", err)}
	}
	if how := c.String("fsync"); how != "local" && how != "authority" {
		return config, &usageError{c, fmt.Sprintf("--fsync %s: it is 'authority' or 'local'", how)}
	}
	cache, err := humanize.ParseBytes(c.String("cache"))
	if err != nil || cache < 1<<20 {
		return config, &usageError{c, fmt.Sprintf("--cache %s: it is a size from 1MiB on", c.String("cache"))}
	}
	config.CacheBytes = int64(cache)
	return config, nil
}

// given is the remote of a daemon, as its supervisor has put it together.
func given(c *cli.Context, url string, token []byte) (*remote, error) {
	r := &remote{token: token, hosts: syncwire.KnownHosts(c.String("known-hosts"))}
	var err error
	if r.Target, err = syncwire.ParseTarget(url); err != nil {
		return nil, err
	}
	if path := c.String("client-key"); path != "" {
		id, err := readClientKey(path)
		if err != nil {
			return nil, err
		}
		r.options = append(r.options, syncwire.As(id))
	}
	return r, nil
}
