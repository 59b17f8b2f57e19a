package file

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// backups say what cp, mv, ln and install do with a file that they are about to replace: it stays under another name.
type backups struct {
	kind   byte // 0 none, s simple, n numbered, e numbered where there are numbered ones
	suffix string
}

// backupKinds are the values of --backup.
var backupKinds = []struct {
	names string
	kind  byte
}{{"none", 0}, {"off", 0}, {"simple", 's'}, {"never", 's'}, {"existing", 'e'}, {"nil", 'e'}, {"numbered", 'n'}, {"t", 'n'}}

// backupsOf reads -b, --backup and -S of a command's options.
func backupsOf(c *tool.Call, options []getopt.Option) (b backups, err error) {
	b.suffix = "~"
	if text, ok := c.Getenv("SIMPLE_BACKUP_SUFFIX"); ok && text != "" && !strings.Contains(text, "/") {
		b.suffix = text
	}
	asked, kind, from := false, "", "backup type"
	for _, o := range options {
		switch o.Name {
		case "b":
			if asked = true; o.Given {
				kind = o.Value
			}
		case "S":
			if asked = true; o.Value != "" && !strings.Contains(o.Value, "/") {
				b.suffix = o.Value
			}
		}
	}
	if !asked {
		return b, nil
	}
	if kind == "" {
		if kind, _ = c.Getenv("VERSION_CONTROL"); kind == "" {
			kind = "existing"
		}
		from = "$VERSION_CONTROL"
	}
	b.kind, err = backupKind(c, kind, from)
	return b, err
}

// backupKind finds a kind by its name or the beginning of it.
func backupKind(c *tool.Call, name, from string) (byte, error) {
	var kinds string
	for _, k := range backupKinds {
		if k.names == name {
			return k.kind, nil
		}
		if strings.HasPrefix(k.names, name) && strings.IndexByte(kinds, k.kind) < 0 {
			kinds += string([]byte{k.kind})
		}
	}
	if len(kinds) == 1 {
		return kinds[0], nil
	}
	what := "invalid"
	if kinds != "" {
		what = "ambiguous"
	}
	c.Say("%s argument '%s' for '%s'", what, name, from)
	fmt.Fprintf(c.Stderr, "Valid arguments are:\n  - 'none', 'off'\n  - 'simple', 'never'\n  - 'existing', 'nil'\n  - 'numbered', 't'\n"+
		"Try '%s --help' for more information.\n", c.Args[0])
	return 0, tool.Exit(1)
}

// keep renames a file that is about to be replaced, and returns its new name; it is empty when no backups are made.
func (b backups) keep(ctx context.Context, c *tool.Call, name string) (string, error) {
	if b.kind == 0 {
		return "", nil
	}
	name = strings.TrimRight(name, "/")
	to := name + b.suffix
	if b.kind != 's' {
		last, err := lastBackup(ctx, c, name)
		if err != nil {
			return "", err
		}
		if last > 0 || b.kind == 'n' {
			to = name + ".~" + strconv.FormatUint(last+1, 10) + "~"
		}
	}
	return to, c.FS.Rename(ctx, name, to)
}

// lastBackup is the highest number of a file's backups, 0 when there are none.
func lastBackup(ctx context.Context, c *tool.Call, name string) (last uint64, err error) {
	entries, err := c.FS.ReadDir(ctx, path.Dir(name))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		number, numbered := strings.CutPrefix(e.Name, path.Base(name)+".~")
		number, ended := strings.CutSuffix(number, "~")
		if n, err := strconv.ParseUint(number, 10, 32); err == nil && numbered && ended {
			last = max(last, n)
		}
	}
	return last, nil
}

// shown is what -v adds for a backup.
func shown(backup string) string {
	if backup == "" {
		return ""
	}
	return " (backup: '" + backup + "')"
}
