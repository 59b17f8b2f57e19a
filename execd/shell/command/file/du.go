package file

import (
	"context"
	"fmt"
	"path"
	"strconv"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var duOptions = getopt.New("0aB:bcd:DhHklLmPsSt:x", "null=0", "all=a", "apparent-size", "bytes=b", "total=c", "max-depth:=d",
	"human-readable=h", "count-links=l", "summarize=s", "separate-dirs=S", "one-file-system=x", "exclude:", "si", "inodes",
	"block-size:=B", "dereference=L")

// usage is what one du does.
type usage struct {
	*tool.Call
	all, apparent, total, links, separate, inodes bool
	depth                                         int // how deep to print
	size                                          tool.BlockSize
	exclude                                       []string
	end                                           string
	seen                                          map[vfs.Ino]bool
}

func du(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(duOptions, 1)
	if err != nil {
		return err
	}
	u := &usage{Call: c, depth: 1 << 30, size: tool.BlockSize{Unit: 1024}, end: "\n", seen: map[vfs.Ino]bool{}}
	for _, o := range options {
		if err := u.set(o); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	sum := uint64(0)
	for _, name := range names {
		a, err := c.FS.Lstat(ctx, name)
		if err == nil && u.excluded(name, path.Base(name)) {
			continue
		}
		if err != nil {
			if err = c.FaultAt(ctx, "cannot access '"+name+"'", err); err != nil {
				return err
			}
			continue
		}
		n, err := u.measure(ctx, name, a, 0)
		if err != nil {
			return err
		}
		sum += n
	}
	if u.total {
		u.print(sum, "total")
	}
	return nil
}

func (u *usage) set(o getopt.Option) error {
	switch o.Name {
	case "0":
		u.end = "\x00"
	case "a":
		u.all = true
	case "apparent-size":
		u.apparent = true
	case "b":
		u.apparent, u.size = true, tool.BlockSize{Unit: 1}
	case "c":
		u.total = true
	case "d":
		n, err := tool.Count(o.Value, 0, "")
		if err != nil {
			return u.Usage(1, "invalid maximum depth '%s'", o.Value)
		}
		u.depth = int(min(n, 1<<30))
	case "h":
		u.size = tool.BlockSize{Unit: 1, Human: 1024}
	case "si":
		u.size = tool.BlockSize{Unit: 1, Human: 1000}
	case "k":
		u.size = tool.BlockSize{Unit: 1024}
	case "m":
		u.size = tool.BlockSize{Unit: 1 << 20}
	case "l":
		u.links = true
	case "s":
		u.depth = 0
	case "S":
		u.separate = true
	case "inodes":
		u.inodes = true
	case "exclude":
		u.exclude = append(u.exclude, o.Value)
	case "B":
		size, err := u.BlockSize(o)
		u.size = size
		return err
	}
	return nil
}

func (u *usage) own(a vfs.Attr) uint64 {
	switch {
	case u.inodes:
		return 1
	case u.apparent && a.Type == vfs.TypeDir:
		return 4096 // what du says of a directory on most filesystems
	case u.apparent:
		return a.Size
	}
	return a.Blocks * 512
}

// measure returns what a node and all below it take, printing on the way.
func (u *usage) measure(ctx context.Context, path string, a vfs.Attr, depth int) (uint64, error) {
	if err := u.Step(ctx, 2); err != nil {
		return 0, err
	}
	if a.Nlink > 1 && a.Type != vfs.TypeDir && !u.links {
		if u.seen[a.Ino] {
			return 0, nil
		}
		u.seen[a.Ino] = true
	}
	own, below := u.own(a), uint64(0)
	if a.Type == vfs.TypeDir {
		entries, err := u.FS.ReadDir(ctx, path)
		if err != nil {
			if err = u.FaultAt(ctx, "cannot read directory '"+path+"'", err); err != nil {
				return 0, err
			}
		}
		for _, e := range entries {
			sub := joinPath(path, e.Name)
			if u.excluded(sub, e.Name) {
				continue
			}
			attr, err := u.FS.Lstat(ctx, sub)
			if err != nil {
				continue
			}
			n, err := u.measure(ctx, sub, attr, depth+1)
			if err != nil {
				return 0, err
			}
			if u.separate && e.Type == vfs.TypeDir {
				below += n
			} else {
				own += n
			}
		}
	}
	if depth <= u.depth && (a.Type == vfs.TypeDir || u.all || depth == 0) {
		u.print(own, path)
	}
	return own + below, nil
}

func (u *usage) excluded(path, name string) bool {
	for _, pattern := range u.exclude {
		if tool.Glob(pattern, name, false) || tool.Glob(pattern, path, false) {
			return true
		}
	}
	return false
}

func (u *usage) print(n uint64, name string) {
	text := u.size.Format(n)
	if u.inodes {
		text = strconv.FormatUint(n, 10)
	}
	fmt.Fprintf(u.Out, "%s\t%s%s", text, name, u.end)
}
