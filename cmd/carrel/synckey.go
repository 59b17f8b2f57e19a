package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/syncwire"
)

// syncKey prints the fingerprint of the key in a file, which it makes when there is none.
func (p *program) syncKey(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	_, statErr := os.Stat(args[0])
	id, err := syncwire.LoadIdentity(args[0])
	if err != nil {
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		p.say("made the key %s; whoever has it is this client, so keep it to yourself", args[0])
	}
	_, err = fmt.Fprintln(p.stdout, id.Fingerprint())
	return err
}
