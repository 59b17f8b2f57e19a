package casstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// run does what a script says, a step between each two semicolons. In texts a bar stands for the end of a line.
func (d *diffCase) run(script string) {
	d.Helper()
	for step := range strings.SplitSeq(script, ";") {
		if f := strings.Fields(step); len(f) > 0 {
			d.step(f[0], "/"+f[1], strings.ReplaceAll(strings.Join(f[2:], " "), "|", "\n"))
		}
	}
}

func (d *diffCase) step(verb, p, arg string) {
	d.Helper()
	switch verb {
	case "mkdir":
		d.mkdir(p)
	case "file":
		d.file(p, arg)
	case "write":
		d.set(p, vfs.AttrSet{Mask: vfs.SetSize})
		d.write(p, arg)
	case "save": // as an editor does
		d.file(p+"~", arg)
		d.rename(p+"~", p)
	case "rm":
		d.unlink(p)
	case "rmdir":
		d.rmdir(p)
	case "mv":
		d.rename(p, "/"+arg)
	case "swap":
		d.swap(p, "/"+arg)
	case "ln":
		d.link(p, "/"+arg)
	case "symlink":
		dir, name := d.parent(p)
		_, err := d.w.Symlink(bg, dir, name, arg, vfs.NewNode{})
		d.ok(err)
	case "fifo":
		dir, name := d.parent(p)
		_, err := d.w.Mknod(bg, dir, name, vfs.TypeFIFO, vfs.NewNode{Mode: 0o644})
		d.ok(err)
	case "chmod":
		var mode uint32
		fmt.Sscanf(arg, "%o", &mode)
		d.set(p, vfs.AttrSet{Mask: vfs.SetMode, Mode: mode})
	case "chown":
		d.set(p, vfs.AttrSet{Mask: vfs.SetUID, UID: uint32(arg[0])})
	case "setx":
		name, value, _ := strings.Cut(arg, "=")
		d.xattr(p, "user."+name, value)
	case "rmx":
		d.ok(d.w.RemoveXattr(bg, d.find(p), "user."+arg))
	case "bulk": // larger than any text that is merged, or of several chunks
		d.ok(d.w.WriteAt(bg, d.find(p), []byte(bulk(arg[0])), 0, false))
	default:
		d.Fatalf("no such step: %s", verb)
	}
}

// listing is a tree on one line: what stands out of each path, in the order of paths.
func (d *diffCase) listing() string {
	d.Helper()
	var lines []string
	first := make(map[vfs.Ino]string)
	var walk func(dir vfs.Ino, above string)
	walk = func(dir vfs.Ino, above string) {
		var entries []vfs.Dirent
		d.ok(d.w.ReadDir(bg, dir, 0, func(e vfs.Dirent) bool { entries = append(entries, e); return true }))
		slices.SortFunc(entries, func(a, b vfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range entries {
			if e.Name == "." || e.Name == ".." {
				continue
			}
			p := above + e.Name
			lines = append(lines, d.line(p, e, first))
			if e.Type == vfs.TypeDir {
				walk(e.Ino, p+"/")
			}
		}
	}
	walk(vfs.RootIno, "")
	return strings.Join(lines, "; ")
}

func (d *diffCase) line(p string, e vfs.Dirent, first map[vfs.Ino]string) (line string) {
	a, err := d.w.Stat(bg, e.Ino)
	d.ok(err)
	usual := uint32(0o644)
	switch line = p; e.Type {
	case vfs.TypeDir:
		line, usual = p+"/", 0o755
	case vfs.TypeSymlink:
		target, err := d.w.Readlink(bg, e.Ino)
		d.ok(err)
		line, usual = p+"->"+target, a.Mode
	case vfs.TypeRegular:
		text := make([]byte, a.Size)
		_, err := d.w.ReadAt(bg, e.Ino, text, 0)
		d.ok(err)
		if len(text) > 100 {
			line = fmt.Sprintf("%s=%d:%x", p, len(text), text[:1])
		} else {
			line = p + "=" + strings.ReplaceAll(string(text), "\n", "|")
		}
	default:
		line = p + " fifo"
	}
	if known, again := first[e.Ino]; again {
		line = p + " is " + known
	}
	first[e.Ino] = p
	if a.Mode != usual {
		line += fmt.Sprintf(" %o", a.Mode)
	}
	if a.UID >= '0' && a.UID <= '9' {
		line += fmt.Sprintf(" of %c", a.UID)
	}
	names, err := d.w.ListXattr(bg, e.Ino)
	d.ok(err)
	slices.Sort(names)
	for _, name := range names {
		value, err := d.w.GetXattr(bg, e.Ino, name)
		d.ok(err)
		line += fmt.Sprintf(" %s:%s", strings.TrimPrefix(name, "user."), value)
	}
	return line
}

func (d *diffCase) close() { d.ok(d.w.Close()) }

const tenLines = "1|2|3|4|5|6|7|8|9|10|"

// mergeCases are what a fork and what it was forked from have made of a tree, and what the second is after the merge.
var mergeCases = []struct {
	name               string
	base, mine, theirs string
	want               string
	conflicts          string // kind, path and copy of each
}{
	{"nothing", "file a 1", "", "", "a=1", ""},
	{"only mine", "file a 1", "write a 2; file b 3", "", "a=2; b=3", ""},
	{"only theirs", "file a 1", "", "write a 2; file b 3", "a=2; b=3", ""},
	{"disjoint files", "file a 1; file b 1", "write a 2", "write b 2", "a=2; b=2", ""},
	{"disjoint trees", "", "mkdir a; file a/x 1", "mkdir b; file b/y 2", "a/; a/x=1; b/; b/y=2", ""},
	{"new files in one directory", "mkdir d", "file d/x 1", "file d/y 2", "d/; d/x=1; d/y=2", ""},

	// edit and edit
	{"different lines", "file f " + tenLines, "write f ONE|2|3|4|5|6|7|8|9|10|", "write f 1|2|3|4|5|6|7|8|9|TEN|", "f=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"the same line", "file f a|b|c|", "write f a|x|c|", "write f a|y|c|", "f=a|y|c|; f.conflict-fork-1=a|x|c|", "bytes /f /f.conflict-fork-1"},
	{"the same line in the same way", "file f a|b|c|", "write f a|x|c|", "write f a|x|c|", "f=a|x|c|", ""},
	{"lines side by side", "file f a|b|c|d|", "write f a|x|c|d|", "write f a|b|y|d|", "f=a|b|y|d|; f.conflict-fork-1=a|x|c|d|", "bytes /f /f.conflict-fork-1"},
	{"one appends, one begins", "file f a|b|c|", "write f 0|a|b|c|", "write f a|b|c|d|", "f=0|a|b|c|d|", ""},
	{"one removes a line", "file f " + tenLines, "write f 1|3|4|5|6|7|8|9|10|", "write f 1|2|3|4|5|6|7|8|9|", "f=1|3|4|5|6|7|8|9|", ""},
	{"both append", "file f a|", "write f a|x|", "write f a|y|", "f=a|y|; f.conflict-fork-1=a|x|", "bytes /f /f.conflict-fork-1"},
	{"one empties, one edits", "file f a|b|", "write f ", "write f a|c|", "f=a|c|; f.conflict-fork-1=", "bytes /f /f.conflict-fork-1"},
	{"mine saved by an editor", "file f " + tenLines, "save f ONE|2|3|4|5|6|7|8|9|10|", "write f 1|2|3|4|5|6|7|8|9|TEN|", "f=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"theirs saved by an editor", "file f " + tenLines, "write f ONE|2|3|4|5|6|7|8|9|10|", "save f 1|2|3|4|5|6|7|8|9|TEN|", "f=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"both saved by editors", "file f " + tenLines, "save f ONE|2|3|4|5|6|7|8|9|10|", "save f 1|2|3|4|5|6|7|8|9|TEN|", "f=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"both saved by editors, the same line", "file f a|", "save f x|", "save f y|", "f=y|; f.conflict-fork-1=x|", "bytes /f /f.conflict-fork-1"},
	{"saved with another mode", "file f a|", "save f b|; chmod f 755", "setx f k=v", "f=b| 755 k:v", ""},
	{"binary", "file f a|b|c|d|\x00", "write f x|b|c|d|\x00", "write f a|b|c|y|\x00", "f=a|b|c|y|\x00; f.conflict-fork-1=x|b|c|d|\x00", "bytes /f /f.conflict-fork-1"},
	{"large", "file f a; bulk f 1", "bulk f 2", "bulk f 3", "f=600000:" + bulkFirst('3') + "; f.conflict-fork-1=600000:" + bulkFirst('2'), "bytes /f /f.conflict-fork-1"},
	{"large, one side", "file f a; bulk f 1", "bulk f 2", "file g 1", "f=600000:" + bulkFirst('2') + "; g=1", ""},

	// edit and delete
	{"mine deletes what theirs edits", "file f 1", "rm f", "write f 2", "f=2", "removed /f "},
	{"theirs deletes what mine edits", "file f 1", "write f 2", "rm f", "f=2", "removed /f "},
	{"mine deletes what theirs leaves", "file f 1; file g 1", "rm f", "write g 2", "g=2", ""},
	{"both delete", "file f 1", "rm f", "rm f", "", ""},
	{"a tree deleted that theirs writes in", "mkdir d; file d/x 1; file d/y 1", "rm d/x; rm d/y; rmdir d", "write d/x 2", "d/; d/x=2", "removed /d ; removed /d/x "},
	{"a tree deleted that theirs adds to", "mkdir d; file d/x 1", "rm d/x; rmdir d", "file d/z 2", "d/; d/z=2", "removed /d "},
	{"a tree deleted that mine adds to", "mkdir d; file d/x 1", "file d/z 2", "rm d/x; rmdir d", "d/; d/z=2", "removed /d "},

	// rename
	{"renamed and edited", "file f a", "mv f g", "write f b", "g=b", ""},
	{"edited and renamed", "file f a", "write f b", "mv f g", "g=b", ""},
	{"renamed and edited on one side, edited on the other", "file f " + tenLines, "mv f g; write g ONE|2|3|4|5|6|7|8|9|10|", "write f 1|2|3|4|5|6|7|8|9|TEN|", "g=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"renamed and deleted", "file f a", "mv f g", "rm f", "g=a", ""},
	{"renamed in two ways", "file f a", "mv f g", "mv f h", "h=a", "moved /g "},
	{"renamed in the same way", "file f a", "mv f g", "mv f g", "g=a", ""},
	{"renamed to what theirs makes", "file f a", "mv f g", "file g b", "g=b; g.conflict-fork-1=a", "name /g /g.conflict-fork-1"},
	{"two files renamed to one name", "file a 1; file b 2", "mv a c", "mv b c", "c=2; c.conflict-fork-1=1", "name /c /c.conflict-fork-1"},
	{"swapped and edited", "file a 1; file b 2", "swap a b", "write a 3", "a=2; b=3", ""},
	{"directory renamed that theirs writes in", "mkdir d; file d/x 1", "mv d e", "write d/x 2; file d/y 3", "e/; e/x=2; e/y=3", ""},
	{"directory renamed in two ways", "mkdir d; file d/x 1", "mv d e; file e/y 2", "mv d f", "f/; f/x=1; f/y=2", "moved /e "},
	{"moved into a directory that is deleted", "mkdir d; file f 1", "mv f d/f", "rmdir d", "d/; d/f=1", "removed /d "},
	{"directories moved into each other", "mkdir a; mkdir b", "mv a b/a", "mv b a/b", "a/; a/b/", "moved /a /a/b/a"},
	{"a loop of three", "mkdir a; mkdir b; mkdir c", "mv a b/a", "mv b c/b; mv c a/c", "a/; a/c/; a/c/b/", "moved /a /a/c/b/a"},

	// attributes
	{"mode and bytes", "file f a", "chmod f 600", "write f b", "f=b 600", ""},
	{"mode on both", "file f a", "chmod f 600", "chmod f 640", "f=a 640", ""},
	{"mode and owner", "file f a", "chmod f 600", "chown f 7", "f=a 600 of 7", ""},
	{"directory's mode and what is in it", "mkdir d", "chmod d 700", "file d/x 1", "d/ 700; d/x=1", ""},
	{"attributes of both", "file f a", "setx f one=1", "setx f two=2", "f=a one:1 two:2", ""},
	{"one attribute twice", "file f a", "setx f one=1", "setx f one=2", "f=a one:2", "attribute  "},
	{"attribute changed of what theirs deletes", "file f a; setx f one=1", "setx f one=2", "rm f", "f=a one:2", "removed /f "},
	{"attribute changed of what mine deletes", "file f a; setx f one=1", "rm f", "setx f one=2", "f=a one:2", "removed /f "},
	{"attribute of what is deleted", "file f a; setx f one=1; file g 1", "rm f", "write g 2", "g=2", ""},
	{"attribute removed and bytes", "file f a; setx f one=1", "rmx f one", "write f b", "f=b", ""},

	// one name
	{"both make a file", "", "file f 1", "file f 2", "f=2; f.conflict-fork-1=1", "name /f /f.conflict-fork-1"},
	{"both make the same file", "", "file f 1", "file f 1", "f=1", ""},
	{"both make a directory", "", "mkdir d; file d/x 1", "mkdir d; file d/y 2", "d/; d/x=1; d/y=2", ""},
	{"both make trees", "", "mkdir d; mkdir d/e; file d/e/x 1; file d/f 1", "mkdir d; mkdir d/e; file d/e/y 2; file d/f 2", "d/; d/e/; d/e/x=1; d/e/y=2; d/f=2; d/f.conflict-fork-1=1", "name /d/f /d/f.conflict-fork-1"},
	{"a directory made anew on both", "mkdir d; file d/x " + tenLines, "rm d/x; rmdir d; mkdir d; file d/x ONE|2|3|4|5|6|7|8|9|10|", "rm d/x; rmdir d; mkdir d; file d/x 1|2|3|4|5|6|7|8|9|TEN|", "d/; d/x=ONE|2|3|4|5|6|7|8|9|TEN|", ""},
	{"a file and a directory", "", "file d 1", "mkdir d; file d/x 2", "d/; d/x=2; d.conflict-fork-1=1", "name /d /d.conflict-fork-1"},
	{"a file becomes a directory and is edited", "file f 1", "rm f; mkdir f; file f/x 2", "write f 3", "f/; f/x=2; f.conflict-fork-1=3", "name /f /f.conflict-fork-1"},
	{"a name of a copy is taken", "file f a|; file f.conflict-fork-1 0", "write f b|", "write f c|", "f=c|; f.conflict-fork-1=0; f.conflict-fork-2=b|", "bytes /f /f.conflict-fork-2"},

	// links and others
	{"linked and edited", "file f a", "ln f g", "write f b", "f=b; g is f", ""},
	{"linked by both", "file f a", "ln f g", "ln f h", "f=a; g is f; h is g", ""},
	{"one name of two deleted, the file edited", "file f a; ln f g", "rm g", "write f b", "f=b", ""},
	{"each name deleted by one", "file f a; ln f g", "rm f", "rm g", "f=a", "removed /f "},
	{"new hard links", "", "file f a; ln f g", "file h b", "f=a; g is f; h=b", ""},
	{"symlink made by both", "", "symlink s x", "symlink s y", "s->y; s.conflict-fork-1->x", "name /s /s.conflict-fork-1"},
	{"the same symlink", "", "symlink s x", "symlink s x", "s->x", ""},
	{"symlink in the place of a file", "file f a", "rm f; symlink f x", "file g b", "f->x; g=b", ""},
	{"fifo", "", "fifo p", "file q 1", "p fifo; q=1", ""},
}

func bulkFirst(seed byte) string { return fmt.Sprintf("%x", bulk(seed)[:1]) }

func TestMerge(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	for _, c := range mergeCases {
		t.Run(c.name, func(t *testing.T) {
			theirs := &diffCase{t, openWorkspace(t, s, "ws")}
			defer theirs.close()
			theirs.run(c.base)
			mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
			defer mine.close()
			mine.run(c.mine)
			theirs.run(c.theirs)
			before := theirs.listing()
			tried, err := s.Merge(bg, "fork", "ws", true)
			theirs.ok(err)
			if got := theirs.listing(); got != before {
				t.Errorf("it was only tried, and is\n%s\nnot\n%s", got, before)
			}
			was := mine.listing()
			report, err := s.Merge(bg, "fork", "ws", false)
			theirs.ok(err)
			if a, b := diffText(tried.Changes), diffText(report.Changes); a != b || len(tried.Conflicts) != len(report.Conflicts) {
				t.Errorf("tried, it would be\n%s\nand it is\n%s", a, b)
			}
			if got := conflictText(report.Conflicts); got != c.conflicts {
				t.Errorf("conflicts %q, want %q", got, c.conflicts)
			}
			theirs.w.forgetAll()
			if got := theirs.listing(); got != c.want {
				t.Errorf("it is\n%q\nnot\n%q", got, c.want)
			}
			if got := mine.listing(); got != was {
				t.Errorf("the fork is %s, was %s", got, was)
			}
			list, err := s.Conflicts(bg, "ws")
			if err != nil || len(list) != len(report.Conflicts) {
				t.Errorf("%d conflicts are listed, %v", len(list), err)
			}
			// Again there is nothing to do, whichever way.
			again, err := s.Merge(bg, "fork", "ws", false)
			if err != nil || again.Rev != 0 || len(again.Changes) > 0 || len(again.Conflicts) > 0 {
				t.Errorf("once more: %+v, %v", again, err)
			}
			back, err := s.Merge(bg, "ws", "fork", false)
			if err != nil || len(back.Conflicts) > 0 {
				t.Errorf("back: %s, %v", conflictText(back.Conflicts), err)
			}
			if got := mine.listing(); got != c.want {
				t.Errorf("merged back, the fork is\n%q\nnot\n%q", got, c.want)
			}
			checkStore(t, s)
		})
		if err := errors.Join(s.RemoveWorkspace(bg, "fork"), s.RemoveWorkspace(bg, "ws")); err != nil {
			t.Fatal(err)
		}
	}
}

func conflictText(list []reconcile.Listed) string {
	var lines []string
	for _, c := range list {
		lines = append(lines, c.Kind+" "+c.Path+" "+c.Copy)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// TestMergeOn goes on with a fork after a merge: the next one begins there.
func TestMergeOn(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("file f a|b|c|d|e|; file gone 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	merge := func(from, into string, want string) {
		t.Helper()
		report, err := s.Merge(bg, from, into, false)
		if err != nil || len(report.Conflicts) > 0 {
			t.Errorf("merge %s: %s, %v", from, conflictText(report.Conflicts), err)
		}
		d := theirs
		if into == "fork" {
			d = mine
		}
		if got := d.listing(); got != want {
			t.Errorf("%s is\n%s\nnot\n%s", into, got, want)
		}
	}
	mine.run("save f X|b|c|d|e|; mkdir d; file d/x 1; rm gone")
	theirs.run("mkdir d; file d/y 1")
	merge("fork", "ws", "d/; d/x=1; d/y=1; f=X|b|c|d|e|")
	mine.run("write f X|b|c|d|Y|; file d/z 2; write d/x 3")
	theirs.run("save f Z|b|c|d|e|; file gone 2; rm d/y")
	merge("fork", "ws", "d/; d/x=3; d/z=2; f=Z|b|c|d|Y|; gone=2")
	merge("ws", "fork", "d/; d/x=3; d/z=2; f=Z|b|c|d|Y|; gone=2")
	mine.run("save f Z|b|c|d|e|; rm d/x; rm d/z; rmdir d")
	theirs.run("write f A|b|c|d|Y|")
	merge("fork", "ws", "f=A|b|c|d|e|; gone=2")
}

// TestMergeRelatives merges what has the base of another one.
func TestMergeRelatives(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	top := &diffCase{t, openWorkspace(t, s, "ws")}
	top.run("file f " + tenLines)
	one := &diffCase{t, openFork(t, s, "ws", "", "one")}
	top.run("file later 1")
	two := &diffCase{t, openFork(t, s, "ws", "", "two")}
	one.run("write f ONE|2|3|4|5|6|7|8|9|10|")
	deep := &diffCase{t, openFork(t, s, "one", "", "deep")}
	deep.run("write f ONE|2|3|4|5|6|7|8|9|TEN|")
	two.run("save f 1|2|3|4|FIVE|6|7|8|9|10|")
	if err := errors.Join(top.w.Close(), s.RemoveWorkspace(bg, "ws")); err != nil {
		t.Fatal(err)
	}
	report, err := s.Merge(bg, "deep", "two", false)
	if got := two.listing(); err != nil || len(report.Conflicts) > 0 || got != "f=ONE|2|3|4|FIVE|6|7|8|9|TEN|; later=1" {
		t.Errorf("deep into two: %s, %v: %s", conflictText(report.Conflicts), err, got)
	}
	if err := errors.Join(deep.w.Close(), s.RemoveWorkspace(bg, "deep")); err != nil {
		t.Fatal(err)
	}
	report, err = s.Merge(bg, "one", "two", false)
	if got := two.listing(); err != nil || len(report.Conflicts) > 0 || got != "f=ONE|2|3|4|FIVE|6|7|8|9|TEN|; later=1" {
		t.Errorf("one into two: %s, %v: %s", conflictText(report.Conflicts), err, got)
	}
}

// TestMergeUndone restores what a workspace was before a merge, and merges again.
func TestMergeUndone(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("file f 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	mine.run("write f 2; file g 3")
	takeSnapshot(t, s, "ws", "before")
	for range 2 {
		if _, err := s.Merge(bg, "fork", "ws", false); err != nil {
			t.Fatal(err)
		}
		if got := theirs.listing(); got != "f=2; g=3" {
			t.Errorf("merged: %s", got)
		}
		theirs.ok(s.Restore(bg, "ws", "before", ""))
		if got := theirs.listing(); got != "f=1" {
			t.Errorf("undone: %s", got)
		}
	}
}

// TestMergeManyLines merges texts of as many lines as it may, and of one more.
func TestMergeManyLines(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	text := strings.Repeat("x|", mergeLines-2)
	theirs.run("file most a|" + text + "b|; file more a|x|" + text + "b|")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	mine.run("write most c|" + text + "b|; write more c|x|" + text + "b|")
	theirs.run("write most a|" + text + "d|; write more a|x|" + text + "d|")
	report, err := s.Merge(bg, "fork", "ws", false)
	if got := conflictText(report.Conflicts); err != nil || got != "bytes /more /more.conflict-fork-1" {
		t.Errorf("conflicts %q, %v", got, err)
	}
	if got := contentOf(theirs.w, "most"); got != strings.ReplaceAll("c|"+text+"d|", "|", "\n") {
		t.Errorf("%d bytes that are not both changes", len(got))
	}
}

// TestMergeUndoneInPart restores what a workspace was between two merges: what the first has brought, and was removed since,
// does not come back with the next.
func TestMergeUndoneInPart(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{DefaultHistory: time.Hour})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("file f 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	merge := func(want string) {
		t.Helper()
		report, err := s.Merge(bg, "fork", "ws", false)
		if got := theirs.listing(); err != nil || len(report.Conflicts) > 0 || got != want {
			t.Errorf("merged: %s, %v: %s, want %s", conflictText(report.Conflicts), err, got, want)
		}
	}
	mine.run("file g 1")
	merge("f=1; g=1")
	theirs.run("rm g")
	takeSnapshot(t, s, "ws", "between")
	mine.run("file h 1")
	merge("f=1; h=1")
	theirs.ok(s.Restore(bg, "ws", "between", ""))
	if got := theirs.listing(); got != "f=1" {
		t.Errorf("undone: %s", got)
	}
	merge("f=1; h=1")
}

func TestMergeErrors(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	openWorkspace(t, s, "ws")
	openWorkspace(t, s, "other")
	openFork(t, s, "ws", "", "fork")
	for _, c := range []struct {
		from, into string
		want       error
	}{
		{"ws", "ws", vfs.ErrInvalid}, {"ws", "other", vfs.ErrInvalid}, {"none", "ws", vfs.ErrNoWorkspace},
		{"ws", "none", vfs.ErrNoWorkspace}, {"fork@1h", "ws", vfs.ErrInvalid}, {"fork", "ws@1h", vfs.ErrNoWorkspace},
	} {
		if _, err := s.Merge(bg, c.from, c.into, false); !errors.Is(err, c.want) {
			t.Errorf("merge %s into %s: %v, want %v", c.from, c.into, err, c.want)
		}
	}
}

func TestResolveConflict(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("file a 1; file b 1; file c 1; file d 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	mine.run("write a mine; write b mine; write c mine; rm d")
	theirs.run("write a theirs; write b theirs; write c theirs; write d theirs")
	if _, err := s.Merge(bg, "fork", "ws", false); err != nil {
		t.Fatal(err)
	}
	theirs.run("mkdir dir; mv b dir/b; mv dir/b b")
	list, err := s.Conflicts(bg, "ws")
	if err != nil || conflictText(list) != "bytes /a /a.conflict-fork-1; bytes /b /b.conflict-fork-1; bytes /c /c.conflict-fork-1; removed /d " {
		t.Fatalf("conflicts %s, %v", conflictText(list), err)
	}
	keep := map[string]reconcile.Resolution{"/a": reconcile.KeepMine, "/b": reconcile.KeepTheirs, "/c": reconcile.KeepBoth, "/d": reconcile.KeepBoth}
	for _, c := range list {
		if c.Kind == "removed" {
			if err := s.ResolveConflict(bg, "ws", c.Number, reconcile.KeepMine); !errors.Is(err, vfs.ErrNotExist) {
				t.Errorf("no copy to keep: %v", err)
			}
		}
		theirs.ok(s.ResolveConflict(bg, "ws", c.Number, keep[c.Path]))
	}
	if got := theirs.listing(); got != "a=mine; b=theirs; c=theirs; c.conflict-fork-1=mine; d=theirs; dir/" {
		t.Errorf("resolved: %s", got)
	}
	if list, err := s.Conflicts(bg, "ws"); err != nil || len(list) > 0 {
		t.Errorf("left: %s, %v", conflictText(list), err)
	}
	if err := s.ResolveConflict(bg, "ws", 1, reconcile.KeepBoth); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("resolved again: %v", err)
	}
	if err := s.ResolveConflict(bg, "ws", 1, "all"); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("no such resolution: %v", err)
	}
}

// TestResolveOldConflict resolves a conflict whose copy is gone, when that of another has its name.
func TestResolveOldConflict(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("file a 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	for n := range 2 {
		mine.run(fmt.Sprintf("write a mine%d", n))
		theirs.run(fmt.Sprintf("write a theirs%d", n))
		report, err := s.Merge(bg, "fork", "ws", false)
		if got := conflictText(report.Conflicts); err != nil || got != "bytes /a /a.conflict-fork-1" {
			t.Fatalf("conflicts %s, %v", got, err)
		}
		if n == 0 {
			theirs.run("rm a.conflict-fork-1")
		}
	}
	for _, how := range []reconcile.Resolution{reconcile.KeepTheirs, reconcile.KeepMine} {
		if err := s.ResolveConflict(bg, "ws", 1, how); !errors.Is(err, vfs.ErrNotExist) {
			t.Errorf("keep %s: %v", how, err)
		}
	}
	if got := theirs.listing(); got != "a=theirs1; a.conflict-fork-1=mine1" {
		t.Errorf("it is %s", got)
	}
	theirs.ok(s.ResolveConflict(bg, "ws", 2, reconcile.KeepMine))
	theirs.ok(s.ResolveConflict(bg, "ws", 1, reconcile.KeepBoth))
	if got := theirs.listing(); got != "a=mine1" {
		t.Errorf("resolved: %s", got)
	}
}

// TestConflictNames resolves conflicts of files whose names are no text, after the store was opened again.
func TestConflictNames(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("mkdir \xff; file \xff/a\xfe 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	mine.run("write \xff/a\xfe mine")
	theirs.run("write \xff/a\xfe theirs")
	const want = "bytes /\xff/a\xfe /\xff/a\xfe.conflict-fork-1"
	report, err := s.Merge(bg, "fork", "ws", false)
	if got := conflictText(report.Conflicts); err != nil || got != want {
		t.Fatalf("conflicts %q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	list, err := s.Conflicts(bg, "ws")
	if got := conflictText(list); err != nil || got != want {
		t.Fatalf("conflicts %q, %v", got, err)
	}
	theirs = &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.ok(s.ResolveConflict(bg, "ws", list[0].Number, reconcile.KeepMine))
	if got := theirs.listing(); got != "\xff/; \xff/a\xfe=mine" {
		t.Errorf("it is %q", got)
	}
}

// TestResolveTaken resolves conflicts in which mine has the name, and theirs is the copy.
func TestResolveTaken(t *testing.T) {
	for how, want := range map[reconcile.Resolution]string{reconcile.KeepMine: "f=g", reconcile.KeepTheirs: "f=theirs"} {
		s := openStore(t, t.TempDir(), Options{})
		theirs := &diffCase{t, openWorkspace(t, s, "ws")}
		theirs.run("file f f; file g g")
		mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
		mine.run("mv g f")
		theirs.run("write f theirs")
		report, err := s.Merge(bg, "fork", "ws", false)
		if got := conflictText(report.Conflicts); err != nil || got != "name /f /f.conflict-fork-1" {
			t.Fatalf("conflicts %s, %v", got, err)
		}
		if got := theirs.listing(); got != "f=g; f.conflict-fork-1=theirs" {
			t.Errorf("merged: %s", got)
		}
		theirs.ok(s.ResolveConflict(bg, "ws", 1, how))
		if got := theirs.listing(); got != want {
			t.Errorf("keep %s: %s, want %s", how, got, want)
		}
	}
}

// TestTornMerge ends a merge before each write: it has happened, with what it records, or it has not.
func TestTornMerge(t *testing.T) {
	const before, after = "f=1; g=1", "f=2; f2=new; g=theirs; g.conflict-fork-1=mine"
	for n, done := 0, false; !done; n++ {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		theirs := &diffCase{t, openWorkspace(t, s, "ws")}
		theirs.run("file f 1; file g 1")
		mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
		mine.run("write f 2; file f2 new; write g mine")
		theirs.ok(s.Close())
		hook, crashed := crashAt(n)
		if s, err = Open(dir, Options{CommitEvery: time.Hour, hook: hook}); err != nil {
			t.Fatal(err)
		}
		theirs.w = openWorkspace(t, s, "ws")
		theirs.run("write g theirs")
		_, err = s.Merge(bg, "fork", "ws", false)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", n, err)
		}
		merged := err == nil
		if merged {
			_, err = s.GC(bg)
		}
		done = err == nil && !crashed()
		_ = s.Close() // it cannot commit what is dirty
		s = openStore(t, dir, Options{CommitEvery: time.Hour})
		theirs.w = openWorkspace(t, s, "ws")
		got := theirs.listing()
		if was := strings.Replace(got, "g=theirs", "g=1", 1); got != after && (merged || was != before) {
			t.Fatalf("step %d, merged %v: it is %s", n, merged, got)
		}
		list, err := s.Conflicts(bg, "ws")
		if err != nil || (len(list) == 1) != (got == after) {
			t.Fatalf("step %d: %s, and conflicts %s, %v", n, got, conflictText(list), err)
		}
		if got != after { // then it can be done
			theirs.run("write g theirs")
		}
		if _, err := s.Merge(bg, "fork", "ws", false); err != nil {
			t.Fatal(err)
		}
		if got := theirs.listing(); got != after {
			t.Fatalf("step %d, and merged then: it is %s", n, got)
		}
	}
}

// TestMergeWhileWritten merges while both workspaces are written: nothing that anybody has written is lost.
func TestMergeWhileWritten(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Millisecond})
	theirs := &diffCase{t, openWorkspace(t, s, "ws")}
	theirs.run("mkdir mine; mkdir theirs; file both 1")
	mine := &diffCase{t, openFork(t, s, "ws", "", "fork")}
	const files = 60
	var group errgroup.Group
	write := func(d *diffCase, dir string) {
		ino := d.find(dir)
		group.Go(func() error {
			for n := range files {
				a, err := d.w.Create(bg, ino, fmt.Sprint(n), vfs.NewNode{Mode: 0o644})
				if err == nil {
					err = d.w.WriteAt(bg, a.Ino, []byte(dir), 0, false)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	write(theirs, "/theirs")
	write(mine, "/mine")
	for range 5 {
		if _, err := s.Merge(bg, "fork", "ws", false); err != nil && !errors.Is(err, vfs.ErrBusy) {
			t.Error(err)
		}
	}
	theirs.ok(group.Wait())
	report, err := s.Merge(bg, "fork", "ws", false)
	theirs.ok(err)
	if len(report.Conflicts) > 0 {
		t.Errorf("conflicts %s", conflictText(report.Conflicts))
	}
	for _, dir := range []string{"mine", "theirs"} {
		for n := range files {
			a, err := theirs.w.Stat(bg, theirs.find(fmt.Sprintf("/%s/%d", dir, n)))
			if err != nil || a.Size != uint64(len(dir)+1) {
				t.Fatalf("%s/%d: %d bytes, %v", dir, n, a.Size, err)
			}
		}
	}
}
