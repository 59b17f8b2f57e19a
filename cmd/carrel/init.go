package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "make a store, which may be encrypted",
		Description: "Other commands make a store as well, when they are the first. With --key-file it is encrypted, from now on and for\n" +
			"good, and FILE is made, with a new key, when it is not there. All commands that open the store need the key then:\n" +
			"--key-file FILE, or CARREL_KEY_FILE. Keep a copy of it elsewhere: without it nothing in the store can be read.",
		Flags:  []cli.Flag{storeFlag()},
		Action: p.init,
	}
}

func (p *program) init(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	s, err := p.open(c.Context, dir, false)
	if err == nil {
		err = s.close()
	}
	switch {
	case err == nil, errors.Is(err, vfs.ErrKey):
		return fmt.Errorf("make a store in %s: there is one: %w", dir, vfs.ErrExist)
	case !errors.Is(err, vfs.ErrNotStore) && !errors.Is(err, os.ErrNotExist):
		return err
	}
	made, err := p.makeKey()
	if err != nil {
		return err
	}
	if s, err = p.open(c.Context, dir, true); err == nil {
		err = s.close()
	}
	switch {
	case err != nil && made:
		return errors.Join(err, os.Remove(p.keyFile))
	case err == nil && made:
		p.say("a new key is in %s: keep a copy of it elsewhere, nothing in the store can be read without it", p.keyFile)
	}
	return err
}
