package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// keyFileEnv names the key file where no flag does.
const keyFileEnv = "CARREL_KEY_FILE"

// maxKeyFile is how long a key file may be, in bytes: one is twice as long as the key, and a newline.
const maxKeyFile = 1 << 10

func keyFileFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "key-file", Usage: "the store is encrypted with the key in `FILE`", DefaultText: "$" + keyFileEnv,
	}
}

// withKeyFile gives a command that may open a store the flag for its key, and reads it before anything else.
func (p *program) withKeyFile(c *cli.Command) {
	has := func(name string) bool {
		return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	}
	if !has("store") {
		return
	}
	if !has("key-file") {
		c.Flags = append(slices.Clone(c.Flags), keyFileFlag())
	}
	hidden := c.Hidden // a command that another has started, which has said it
	c.Before = func(c *cli.Context) (err error) {
		p.keyFile, err = keyFileOf(c)
		if err == nil && !hidden {
			p.warnOfKeyFile()
		}
		return err
	}
}

// warnOfKeyFile says when somebody else may read or change the key file: also where the key is not needed this time. What is
// no file has none of its own access rights.
func (p *program) warnOfKeyFile() {
	info, err := os.Stat(p.keyFile)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return
	}
	p.warn(fmt.Sprintf("others than you may read or change the key in %s: its mode is %04o, and 'chmod 600 %[1]s' mends that", p.keyFile,
		info.Mode().Perm()))
}

// keyFileOf returns the path of the key file, absolute, or nothing.
func keyFileOf(c *cli.Context) (string, error) {
	path := ""
	for _, x := range c.Lineage() {
		if s := x.String("key-file"); s != "" && path == "" {
			path = s
		}
	}
	if path == "" {
		path = os.Getenv(keyFileEnv)
	}
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// keyFlags are what a process of this program that is to open the same store is started with.
func (p *program) keyFlags() []string {
	if p.keyFile == "" {
		return nil
	}
	return []string{"--key-file=" + p.keyFile}
}

// key reads the key file. Without one there is no key.
func (p *program) key() ([]byte, error) {
	if p.keyFile == "" {
		return nil, nil
	}
	info, err := os.Stat(p.keyFile)
	if err != nil {
		return nil, told(fmt.Errorf("read the key: %w", err), "'carrel init --key-file FILE' makes a key, for a new store. "+
			"Without the key that it was made with, a store cannot be read.")
	}
	if info.Size() > maxKeyFile {
		return nil, notKey(p.keyFile)
	}
	text, err := os.ReadFile(p.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != casstore.KeyLen {
		return nil, notKey(p.keyFile)
	}
	return key, nil
}

func notKey(path string) error {
	return told(fmt.Errorf("%s holds no key: %w", path, vfs.ErrInvalid), "A key file has %d hexadecimal digits. "+
		"'carrel init --key-file FILE' makes one.", 2*casstore.KeyLen)
}

// makeKey makes the key file when it is not there.
func (p *program) makeKey() (made bool, err error) {
	if p.keyFile == "" {
		return false, nil
	}
	f, err := os.OpenFile(p.keyFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make a key: %w", err)
	}
	var key [casstore.KeyLen]byte
	_, _ = rand.Read(key[:]) // it never fails
	_, err = fmt.Fprintln(f, hex.EncodeToString(key[:]))
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(p.keyFile))); err != nil {
		return false, fmt.Errorf("make a key: %w", errors.Join(err, os.Remove(p.keyFile)))
	}
	return true, nil
}

// syncDir has the names in a directory be durable: a store must not outlive its key.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
