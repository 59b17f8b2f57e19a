package git

import (
	"context"
	"errors"
	"path"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// lockSuffix ends the name of the file that whoever changes a file of a repository makes first, as git does: so two never
// change the same thing at once, be it here or by a real git in a container.
const lockSuffix = ".lock"

// lockFile is a file that is to take another's place when all of it is written.
type lockFile struct {
	g    *call
	name string // what it replaces, absolute
	f    *treepath.File
}

// lock makes the lock of a file, which is named absolutely. It says that somebody else has it, as git does.
func (g *call) lock(name string) (*lockFile, error) {
	if err := g.FS.MkdirAll(g.ctx, path.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := g.FS.OpenFile(g.ctx, name+lockSuffix, treepath.Write|treepath.Create|treepath.Exclusive, 0o666)
	if errors.Is(err, vfs.ErrExist) {
		return nil, g.fatal("Unable to create '%s%s': File exists.\n\n"+
			"Another git process seems to be running in this repository. If there is none,\n"+
			"one has ended in the middle: then remove the file to continue.", name, lockSuffix)
	}
	if err != nil {
		return nil, err
	}
	return &lockFile{g, name, f}, nil
}

// commit writes the file and puts it into its place. The lock is gone then, after an error too.
func (l *lockFile) commit(data []byte) error {
	_, err := l.f.Write(data)
	if err == nil {
		err = l.f.Close()
	}
	if err == nil {
		err = l.g.FS.Rename(l.g.ctx, l.name+lockSuffix, l.name)
	}
	if err != nil {
		l.release()
	}
	return err
}

// release gives a lock up, whatever has become of the command. Nil is no lock.
func (l *lockFile) release() {
	if l == nil {
		return
	}
	_ = l.f.Close() // it may be closed already
	_ = l.g.FS.Remove(context.WithoutCancel(l.g.ctx), l.name+lockSuffix)
}
