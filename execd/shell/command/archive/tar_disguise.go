package archive

import (
	"archive/tar"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
)

// disguise is what an archive that is made says of its members in place of what they are.
type disguise struct {
	owner, group *account
	mode         *mode.Change
	mtime        *time.Time
}

// account is a user or group: a name and a number.
type account struct {
	name string
	id   int
}

// apply changes the header of a node.
func (d disguise) apply(h *tar.Header, a vfs.Attr) {
	if d.owner != nil {
		h.Uname, h.Uid = d.owner.name, d.owner.id
	}
	if d.group != nil {
		h.Gname, h.Gid = d.group.name, d.group.id
	}
	if d.mode != nil {
		h.Mode = int64(d.mode.Apply(a.Mode, a.Type == vfs.TypeDir, 0))
	}
	if d.mtime != nil {
		h.ModTime = *d.mtime
	}
}

// setDisguise reads --owner, --group, --mode, --mtime, and -N, which reads its value as --mtime does.
func (t *tarrer) setDisguise(o getopt.Option) error {
	switch o.Name {
	case "owner":
		id, _ := t.names.UserID(o.Value)
		t.as.owner = accountOf(o.Value, int(id))
	case "group":
		id, _ := t.names.GroupID(o.Value)
		t.as.group = accountOf(o.Value, int(id))
	case "mode":
		change, err := mode.Parse(o.Value)
		if err != nil {
			return t.Die(2, "Invalid mode given on option")
		}
		t.as.mode = &change
	default:
		then, err := t.moment(o.Value)
		if err != nil {
			return err
		}
		if o.Name == "N" {
			t.newer = then
		} else {
			t.as.mtime = &then
		}
	}
	return nil
}

// accountOf reads NAME:ID, a name whose number is known, or a number alone.
func accountOf(text string, known int) *account {
	name, number, both := strings.Cut(text, ":")
	if both {
		if id, err := strconv.Atoi(number); err == nil {
			return &account{name, id}
		}
	}
	if strings.Trim(strings.TrimPrefix(text, "+"), "0123456789") == "" {
		return &account{"", known}
	}
	return &account{text, known}
}

// moment reads a date, or takes that of a file whose name begins with a slash or a dot.
func (t *tarrer) moment(text string) (time.Time, error) {
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		a, err := t.FS.Stat(t.ctx, text)
		if err != nil {
			return time.Time{}, t.Die(2, "%s: Cannot stat: %s", text, command.Reason(err))
		}
		return a.Mtime.Go(), nil
	}
	then, err := datetime.Parse(text, t.Now().In(t.Zone(t.ctx)))
	if err != nil {
		return time.Time{}, t.Die(2, "Substituting -9223372036854775807-01-01 00:00:00 for unknown date format '%s'", text)
	}
	return then, nil
}

// topOf is the directory that --one-top-level names an archive's by: its name without what says its kind.
func topOf(archive string) string {
	base := path.Base(archive)
	for _, suffix := range []string{".gz", ".xz", ".zst", ".bz2", ".tgz", ".txz", ".tzst", ".tbz2", ".tar"} {
		base = strings.TrimSuffix(base, suffix)
	}
	return base
}

// below puts a name into the top directory, if there is one and the name does not begin with it.
func (t *tarrer) below(name string) string {
	if clean := strings.TrimPrefix(name, "./"); t.top == "" || clean == t.top || strings.HasPrefix(clean, t.top+"/") {
		return name
	}
	return path.Join(t.top, name)
}
