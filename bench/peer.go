package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// peer is a target that a command mounts.
type peer struct {
	plain
	name, command string
	dir           string
	filesystem    string
	holder        *holder
}

// Peer returns a target that command, a line for bash, mounts on the directory $DIR. The command may stay, and is ended
// by SIGTERM, or go to the background; what it has mounted is unmounted in the end.
func Peer(name, command string) Target { return &peer{name: name, command: command} }

func (p *peer) Name() string { return p.name }

func (p *peer) Open(ctx context.Context, base string) (dir string, err error) {
	p.dir = base
	cmd := exec.Command("bash", "--norc", "--noprofile", "-c", p.command)
	cmd.Env = append(os.Environ(), "DIR="+base)
	if p.holder, err = hold(cmd); err == nil {
		err = p.holder.until(ctx, true, func() (bool, error) { return mountedOn(base) })
	}
	if err != nil {
		return "", fmt.Errorf("%q: %w", p.command, err)
	}
	p.filesystem = filesystemOf(base)
	return base, nil
}

// Close unmounts first: a command that stays may end by that, and one that has gone to the background must.
func (p *peer) Close() error {
	if p.holder == nil {
		return nil
	}
	err := cleanMount(p.dir)
	return errors.Join(err, p.holder.stop(), cleanMount(p.dir))
}

func (p *peer) Describe() TargetInfo {
	return TargetInfo{Name: p.name, Kind: "peer", Filesystem: p.filesystem, Command: p.command}
}
