// Package reconciletest has trees of records that scripts change, to try reconciliations and pushes on.
package reconciletest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Records are a workspace, as its Records say it.
type Records map[vfs.Key][]byte

// NewRecords is a workspace with nothing in it.
func NewRecords() Records {
	root := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno}
	return Records{reconcile.InodeKey(vfs.RootIno): root.Append(nil)}
}

// Value, Names and MayMake make Records a state that a push can be checked against.
func (r Records) Value(k vfs.Key) ([]byte, error) { return r[k], nil }

// Names implements vfs.PushView.
func (r Records) Names(kind vfs.KeyKind, ino vfs.Ino, yield func(string) bool) error {
	for k := range r {
		if k.Kind == kind && k.Ino == ino && !yield(k.Name) {
			break
		}
	}
	return nil
}

// MayMake implements vfs.PushView.
func (r Records) MayMake(vfs.Ino) (bool, error) { return true, nil }

// NameOf implements reconcile.View.
func (r Records) NameOf(files []vfs.Ino) (map[vfs.Ino]reconcile.Place, error) {
	out := make(map[vfs.Ino]reconcile.Place)
	for k, v := range r {
		if ino := reconcile.Target(v); k.Kind == vfs.KeyDirent && slices.Contains(files, ino) {
			if p, ok := out[ino]; !ok || k.Compare(p.Key()) < 0 {
				out[ino] = reconcile.Place{Dir: k.Ino, Name: k.Name}
			}
		}
	}
	return out, nil
}

// Side is Records that somebody works on, with what a file system does about counts.
type Side struct {
	Records
	Next  *vfs.Ino  // the number that was given out last
	Clock *vfs.Time // goes on with each step
}

func (s Side) tick() vfs.Time { *s.Clock++; return *s.Clock }

// Inode is the record of an inode that is there.
func (s Side) Inode(ino vfs.Ino) *vfs.InodeRecord {
	rec, err := reconcile.InodeOf(s.Records[reconcile.InodeKey(ino)])
	if err != nil || rec == nil {
		panic(fmt.Sprint("no inode ", ino, err))
	}
	return rec
}

func (s Side) put(ino vfs.Ino, rec *vfs.InodeRecord) {
	s.Records[reconcile.InodeKey(ino)] = rec.Append(nil)
}

// find walks a path, which is "a/b": dir is the directory of the last name.
func (s Side) Find(path string) (dir vfs.Ino, name string, ino vfs.Ino) {
	dir = vfs.RootIno
	parts := strings.Split(path, "/")
	for _, p := range parts[:len(parts)-1] {
		dir = reconcile.Target(s.Records[reconcile.Place{Dir: dir, Name: p}.Key()])
	}
	name = parts[len(parts)-1]
	return dir, name, reconcile.Target(s.Records[reconcile.Place{Dir: dir, Name: name}.Key()])
}

func (s Side) touchDir(dir vfs.Ino, links int) {
	d := s.Inode(dir)
	d.Mtime = s.tick()
	d.Ctime, d.Nlink = d.Mtime, uint32(int(d.Nlink)+links)
	s.put(dir, d)
}

func linksOf(t vfs.Type) int {
	if t == vfs.TypeDir {
		return 1
	}
	return 0
}

func (s Side) name(dir vfs.Ino, name string, ino vfs.Ino, t vfs.Type) {
	d := vfs.DirentRecord{Ino: ino, Type: t}
	s.Records[reconcile.Place{Dir: dir, Name: name}.Key()] = d.Append(nil)
	s.touchDir(dir, linksOf(t))
}

func (s Side) make(path string, t vfs.Type, content string) {
	dir, name, _ := s.Find(path)
	*s.Next++
	ino := *s.Next
	now := s.tick()
	rec := vfs.InodeRecord{Type: t, Mode: 0o644, Nlink: 1, Mtime: now, Ctime: now, Btime: now}
	if t == vfs.TypeDir {
		rec.Nlink, rec.Parent = 2, dir
	}
	s.setBody(&rec, content)
	s.put(ino, &rec)
	s.name(dir, name, ino, t)
}

func (s Side) setBody(rec *vfs.InodeRecord, content string) {
	rec.Size, rec.Body = uint64(len(content)), vfs.Body{}
	if content != "" {
		rec.Body = vfs.Body{Kind: vfs.BodyInline, Data: []byte(content)}
	}
}

func (s Side) unname(dir vfs.Ino, name string) (ino vfs.Ino, t vfs.Type) {
	k := reconcile.Place{Dir: dir, Name: name}.Key()
	ino = reconcile.Target(s.Records[k])
	t = s.Inode(ino).Type
	delete(s.Records, k)
	s.touchDir(dir, -linksOf(t))
	return ino, t
}

func (s Side) drop(ino vfs.Ino) {
	rec := s.Inode(ino)
	if rec.Nlink--; rec.Type != vfs.TypeDir && rec.Nlink > 0 {
		rec.Ctime = s.tick()
		s.put(ino, rec)
		return
	}
	for k := range s.Records {
		if k.Ino == ino {
			delete(s.Records, k)
		}
	}
}

// do does what a line of a script says. It panics when that cannot be done.
func (s Side) Do(line string) {
	f := strings.Fields(line)
	arg := func(n int) string { return f[n] }
	switch f[0] {
	case "mkdir":
		s.make(arg(1), vfs.TypeDir, "")
	case "create":
		s.make(arg(1), vfs.TypeRegular, arg(2))
	case "write":
		_, _, ino := s.Find(arg(1))
		rec := s.Inode(ino)
		s.setBody(rec, arg(2))
		rec.Mtime = s.tick()
		rec.Ctime = rec.Mtime
		s.put(ino, rec)
	case "chmod":
		_, _, ino := s.Find(arg(1))
		rec := s.Inode(ino)
		fmt.Sscanf(arg(2), "%o", &rec.Mode)
		rec.Ctime = s.tick()
		s.put(ino, rec)
	case "rm":
		dir, name, _ := s.Find(arg(1))
		ino, _ := s.unname(dir, name)
		s.drop(ino)
	case "rmr":
		dir, _, ino := s.Find(arg(1))
		_ = dir
		for k := range maps.Clone(s.Records) {
			if k.Kind == vfs.KeyDirent && k.Ino == ino && s.Records[k] != nil {
				s.Do("rmr " + arg(1) + "/" + k.Name)
			}
		}
		s.Do("rm " + arg(1))
	case "link":
		_, _, ino := s.Find(arg(1))
		dir, name, _ := s.Find(arg(2))
		rec := s.Inode(ino)
		rec.Nlink++
		rec.Ctime = s.tick()
		s.put(ino, rec)
		s.name(dir, name, ino, rec.Type)
	case "mv":
		dir, name, _ := s.Find(arg(1))
		to, newName, old := s.Find(arg(2))
		if old != 0 {
			s.unname(to, newName)
			s.drop(old)
		}
		ino, t := s.unname(dir, name)
		s.name(to, newName, ino, t)
		rec := s.Inode(ino)
		rec.Ctime = s.tick()
		if t == vfs.TypeDir {
			rec.Parent = to
		}
		s.put(ino, rec)
	case "setx":
		_, _, ino := s.Find(arg(1))
		k := vfs.Key{Kind: vfs.KeyXattr, Ino: ino, Name: arg(2)}
		rec := s.Inode(ino)
		if s.Records[k] == nil {
			rec.Xattrs++
		}
		s.Records[k] = []byte(arg(3))
		rec.Ctime = s.tick()
		s.put(ino, rec)
	default:
		panic(line)
	}
}

// listing is a tree for people: a line for each name, with contents or attributes that stand out.
func (r Records) Listing() []string {
	var out []string
	var walk func(dir vfs.Ino, path string)
	walk = func(dir vfs.Ino, path string) {
		for k, v := range r {
			if k.Kind != vfs.KeyDirent || k.Ino != dir {
				continue
			}
			ino := reconcile.Target(v)
			rec, err := reconcile.InodeOf(r[reconcile.InodeKey(ino)])
			if err != nil || rec == nil {
				out = append(out, path+k.Name+" leads nowhere")
				continue
			}
			line := path + k.Name
			if rec.Type == vfs.TypeDir {
				out = append(out, line+"/")
				walk(ino, line+"/")
				continue
			}
			line += "=" + string(rec.Body.Data)
			if rec.Mode != 0o644 {
				line += fmt.Sprintf(" %o", rec.Mode)
			}
			var xattrs []string
			for x, value := range r {
				if x.Kind == vfs.KeyXattr && x.Ino == ino {
					xattrs = append(xattrs, " "+x.Name+":"+string(value))
				}
			}
			slices.Sort(xattrs)
			out = append(out, line+strings.Join(xattrs, ""))
		}
	}
	walk(vfs.RootIno, "")
	slices.Sort(out)
	return out
}

// RandomStep returns a line that can be done, or nothing.
func RandomStep(s Side, rng *rand.Rand) string {
	dirs, files := []string{""}, []string{}
	for _, line := range s.Listing() {
		if dir, ok := strings.CutSuffix(line, "/"); ok {
			dirs = append(dirs, dir+"/")
		} else {
			name, _, _ := strings.Cut(line, "=")
			files = append(files, name)
		}
	}
	dir := dirs[rng.IntN(len(dirs))]
	path := dir + string(rune('a'+rng.IntN(4)))
	_, _, there := s.Find(path)
	content := fmt.Sprintf("c%d", *s.Clock)
	some := append(slices.Clone(files), dirs[1:]...)
	switch kind := rng.IntN(8); {
	case kind == 0 && there == 0:
		return "mkdir " + path
	case kind <= 2 && there == 0:
		return "create " + path + " " + content
	case kind == 3 && len(files) > 0:
		return "write " + files[rng.IntN(len(files))] + " " + content
	case kind == 4 && len(files) > 0 && there == 0:
		return "link " + files[rng.IntN(len(files))] + " " + path
	case kind == 5 && len(some) > 0:
		return "rmr " + strings.TrimSuffix(some[rng.IntN(len(some))], "/")
	case kind >= 6 && len(some) > 0:
		from := strings.TrimSuffix(some[rng.IntN(len(some))], "/")
		_, _, ino := s.Find(from)
		if there == ino || strings.HasPrefix(path+"/", from+"/") || there != 0 && (s.Inode(there).Type == vfs.TypeDir || s.Inode(ino).Type == vfs.TypeDir) {
			return ""
		}
		return "mv " + from + " " + path
	}
	return ""
}
