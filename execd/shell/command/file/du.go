package file

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var duOptions = getopt.New("0abcd:DhHklLmPsSt:x", "null=0", "all=a", "apparent-size", "bytes=b", "total=c", "max-depth:=d",
	"human-readable=h", "count-links=l", "summarize=s", "separate-dirs=S", "one-file-system=x", "exclude:", "si", "inodes",
	"block-size:=B", "dereference=L")

// usage is what one du does.
type usage struct {
	*tool.Call
	all, apparent, total, links, separate, inodes bool
	depth                                         int // how deep to print
	unit                                          uint64
	human                                         float64
	exclude                                       []string
	end                                           string
	seen                                          map[vfs.Ino]bool
}

func du(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(duOptions, 1)
	if err != nil {
		return err
	}
	u := &usage{Call: c, depth: 1 << 30, unit: 1024, end: "\n", seen: map[vfs.Ino]bool{}}
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
		u.apparent, u.unit = true, 1
	case "c":
		u.total = true
	case "d":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return u.Usage(1, "invalid maximum depth '%s'", o.Value)
		}
		u.depth = n
	case "h":
		u.human = 1024
	case "si":
		u.human = 1000
	case "k":
		u.unit = 1024
	case "m":
		u.unit = 1 << 20
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
		n, err := tool.Size(o.Value)
		if err != nil || n < 1 {
			return u.Die(1, "invalid --block-size argument '%s'", o.Value)
		}
		u.unit = uint64(n)
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
	text := strconv.FormatUint((n+u.unit-1)/u.unit, 10)
	switch {
	case u.inodes:
		text = strconv.FormatUint(n, 10)
	case u.human > 0:
		text = tool.Human(n, u.human)
	}
	fmt.Fprintf(u.Out, "%s\t%s%s", text, name, u.end)
}

var dfOptions = getopt.New("ahHiklmPt:Tx:B:", "all=a", "human-readable=h", "si=H", "inodes=i", "portability=P", "print-type=T",
	"block-size:=B", "type:=t", "exclude-type:=x", "total", "output::")

// df has one filesystem to tell of: the workspace's.
func df(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(dfOptions, 1)
	if err != nil {
		return err
	}
	unit, human, inodes, kind, posix := uint64(1024), float64(0), false, false, false
	for _, o := range options {
		switch o.Name {
		case "h":
			human = 1024
		case "H":
			human = 1000
		case "i":
			inodes = true
		case "m":
			unit = 1 << 20
		case "P":
			posix = true
		case "T":
			kind = true
		case "B":
			n, err := tool.Size(o.Value)
			if err != nil || n < 1 {
				return c.Die(1, "invalid --block-size argument '%s'", o.Value)
			}
			unit = uint64(n)
		}
	}
	for _, name := range names {
		if _, err := c.FS.Stat(ctx, name); err != nil {
			if err = c.FaultAt(ctx, name, err); err != nil {
				return err
			}
		}
	}
	if c.Status != 0 && len(names) == 1 {
		return nil
	}
	st, err := c.FS.Tree.StatFS(ctx)
	if err != nil {
		return err
	}
	total, free, available := st.Blocks*uint64(st.BlockSize), st.Free*uint64(st.BlockSize), st.Available*uint64(st.BlockSize)
	used := total - free
	titles := []string{"1K-blocks", "Used", "Available", "Use%"}
	if inodes {
		total, used, available = st.Files, st.Files-st.FilesFree, st.FilesFree
		unit, titles = 1, []string{"Inodes", "IUsed", "IFree", "IUse%"}
	}
	text := func(n uint64) string {
		if human > 0 {
			return tool.Human(n, human)
		}
		return strconv.FormatUint((n+unit-1)/unit, 10)
	}
	switch {
	case human > 0 && !inodes:
		titles = []string{"Size", "Used", "Avail", "Use%"}
	case posix && !inodes:
		titles[0], titles[3] = "1024-blocks", "Capacity"
	}
	percent := "-"
	if used+available > 0 {
		percent = strconv.FormatUint((used*100+used+available-1)/(used+available), 10) + "%"
	}
	return dfTable(c, titles, []string{text(total), text(used), text(available), percent}, kind)
}

func dfTable(c *tool.Call, titles, values []string, kind bool) error {
	head, line := "Filesystem    ", "carrel        "
	if kind {
		head, line = head+" Type", line+" fuse"
	}
	for i, title := range titles {
		width := max(len(title), len(values[i]), 5)
		if i == 3 {
			width = max(len(title), len(values[i]))
		}
		head += fmt.Sprintf(" %*s", width, title)
		line += fmt.Sprintf(" %*s", width, values[i])
	}
	_, err := c.Out.WriteString(head + " Mounted on\n" + strings.TrimRight(line, " ") + " /\n")
	return err
}
