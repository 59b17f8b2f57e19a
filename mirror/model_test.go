package mirror

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

var (
	modelSeed  = flag.Uint64("seed", 0, "run TestModel with this seed alone")
	modelSeeds = flag.Uint64("seeds", 2, "how many seeds TestModel runs")
	modelSteps = flag.Int("steps", 60, "steps of each")
)

// Three mirrors and an authority, random operations, cut wires, crashes and restarts: after all is mended everybody has the
// same tree, and whatever an fsync was acknowledged for and nobody has replaced or removed knowingly is in it.
func TestModel(t *testing.T) {
	for seed := range *modelSeeds {
		if *modelSeed != 0 {
			seed = *modelSeed
		}
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Logf("again: go test ./mirror -run TestModel -seed %d", seed)
			m := &model{
				t: t, lab: newLab(t, 3), rng: rand.New(rand.NewPCG(seed, 7)),
				acked: make(map[string]string), replaced: make(map[string]bool),
			}
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(m.log, "\n"))
				}
			}()
			for range *modelSteps {
				m.step()
			}
			m.finish()
		})
		if *modelSeed != 0 || t.Failed() {
			break
		}
	}
}

type model struct {
	t        *testing.T
	lab      *lab
	rng      *rand.Rand
	serial   int
	log      []string
	acked    map[string]string // contents that an fsync was acknowledged for, and which
	replaced map[string]bool   // contents that somebody who had them has replaced or removed
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) step() {
	n := m.lab.nodes[m.rng.IntN(len(m.lab.nodes))]
	switch k := m.rng.IntN(100); {
	case k < 4:
		m.note("m%d: cut", n.n)
		n.wire.cut()
	case k < 10:
		m.note("m%d: mend", n.n)
		n.wire.mend()
	case k < 12:
		m.note("m%d: restart", n.n)
		n.leave()
		n.start()
	case k < 14:
		m.note("m%d: crash", n.n)
		n.crash()
	case k < 15:
		m.note("authority: restart")
		m.lab.shut()
		m.lab.open()
	case k < 20:
		time.Sleep(time.Duration(m.rng.IntN(30)) * time.Millisecond) // others come on meanwhile
	default:
		m.work(n)
	}
}

// crash has the mirror go on with what its disk held at some moment, after which it has told nobody anything.
func (n *node) crash() {
	n.lab.t.Helper()
	if n.wireUp() {
		n.wire.cut()
		defer n.wire.mend()
	}
	next := n.config.Dir + "x"
	script := fmt.Sprintf("rm -rf %[2]s && mkdir -p %[2]s/store && cp -a %[1]s/id %[2]s/ && cd %[1]s/store && cp -a HEAD %[2]s/store/ 2>/dev/null; "+
		"cp -a --sparse=always badger %[2]s/store/ && cp -a --sparse=always packs %[2]s/store/", n.config.Dir, next)
	for try := 0; ; try++ { // a compaction may take files away
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err == nil {
			break
		}
		if try == 5 {
			n.lab.t.Fatalf("copy: %v: %s", err, out)
		}
	}
	n.leave()
	n.config.Dir = next
	n.start()
}

// short bounds what may wait for a peer.
func short() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 100*time.Millisecond)
}

// work does something in a mirror's tree. What cannot be done is not done.
func (m *model) work(n *node) {
	ctx, cancel := short()
	defer cancel()
	tree := n.Tree()
	if n.turn.take(ctx) != nil {
		return
	}
	release := sync.OnceFunc(n.turn.giveBack) // till then nothing comes between what is seen and what is done
	defer release()
	files, dirs := m.look(ctx, tree)
	dir := dirs[m.rng.IntN(len(dirs))]
	name := string(rune('a' + m.rng.IntN(5)))
	var err error
	switch k := m.rng.IntN(10); {
	case k < 4:
		err = m.write(ctx, n, dir, name, release)
	case k < 5:
		_, err = tree.Mkdir(ctx, dir, name, vfs.NewNode{Mode: 0o755})
		m.note("m%d: mkdir %d/%s: %v", n.n, dir, name, err)
	case k < 6 && len(files) > 0:
		f := files[m.rng.IntN(len(files))]
		if err = tree.Unlink(ctx, f.dir, f.name); err == nil {
			m.replaced[f.content] = true
		}
		m.note("m%d: unlink %d/%s: %v", n.n, f.dir, f.name, err)
	case k < 8 && len(files) > 0:
		f := files[m.rng.IntN(len(files))]
		over := slices.IndexFunc(files, func(o found) bool { return o.dir == dir && o.name == name })
		if over < 0 && m.unread(ctx, tree, dir, name) {
			return
		}
		if err = tree.Rename(ctx, f.dir, f.name, dir, name, 0); err == nil && over >= 0 && files[over].ino != f.ino {
			m.replaced[files[over].content] = true
		}
		m.note("m%d: rename %d/%s %d/%s: %v", n.n, f.dir, f.name, dir, name, err)
	case k < 9 && len(dirs) > 1:
		from := dirs[1+m.rng.IntN(len(dirs)-1)]
		a, serr := tree.Stat(ctx, from)
		if serr == nil {
			err = m.moveDir(ctx, tree, a, dir, name)
			m.note("m%d: move %d to %d/%s: %v", n.n, from, dir, name, err)
		}
	case len(files) > 0:
		f := files[m.rng.IntN(len(files))]
		_, err = tree.SetAttr(ctx, f.ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: uint32(0o600 + m.rng.IntN(64))})
		m.note("m%d: chmod %d: %v", n.n, f.ino, err)
	}
	for _, ok := range []error{vfs.ErrExist, vfs.ErrNotExist, vfs.ErrNotEmpty, vfs.ErrIsDir, vfs.ErrNotDir, vfs.ErrInvalid,
		vfs.ErrInterrupted, vfs.ErrStale} {
		if errors.Is(err, ok) {
			err = nil
		}
	}
	if err != nil {
		m.t.Errorf("m%d: %v", n.n, err)
	}
}

// unread reports whether there may be a file of a name whose bytes could not be read: what would be lost with it is not known.
func (m *model) unread(ctx context.Context, tree vfs.Tree, dir vfs.Ino, name string) bool {
	a, err := tree.Lookup(ctx, dir, name)
	return err == nil && a.Type != vfs.TypeDir || err != nil && !errors.Is(err, vfs.ErrNotExist)
}

func (m *model) moveDir(ctx context.Context, tree vfs.Tree, a vfs.Attr, dir vfs.Ino, name string) error {
	old := ""
	err := tree.ReadDir(ctx, a.Parent, 0, func(d vfs.Dirent) bool {
		if d.Ino == a.Ino {
			old = d.Name
		}
		return old == ""
	})
	if err != nil || old == "" {
		return err
	}
	if there, err := tree.Lookup(ctx, dir, name); err == nil && there.Type != vfs.TypeDir {
		return nil
	}
	return tree.Rename(ctx, a.Parent, old, dir, name, 0)
}

func (m *model) write(ctx context.Context, n *node, dir vfs.Ino, name string, written func()) error {
	tree := n.Tree()
	m.serial++
	size := 1 + m.rng.IntN(30)
	if m.rng.IntN(4) == 0 {
		size = 5000 + m.rng.IntN(200_000)
	}
	content := fmt.Sprintf("<%d>%s", m.serial, strings.Repeat(string(rune('a'+m.serial%26)), size))
	a, err := tree.Lookup(ctx, dir, name)
	if errors.Is(err, vfs.ErrNotExist) {
		a, err = tree.Create(ctx, dir, name, vfs.NewNode{Mode: 0o644})
	}
	if err != nil || a.Type != vfs.TypeRegular {
		return err
	}
	old, err := m.read(ctx, tree, a)
	if err != nil {
		return err
	}
	if _, err = tree.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetSize}); err != nil {
		return err
	}
	m.replaced[old] = true
	if err = tree.WriteAt(ctx, a.Ino, []byte(content), 0, false); err != nil {
		return err
	}
	m.note("m%d: write %d/%s (%d) %.8s", n.n, dir, name, a.Ino, content)
	written()
	if m.rng.IntN(2) == 0 {
		err = tree.Fsync(ctx, a.Ino)
		m.note("m%d: fsync %d: %v", n.n, a.Ino, err)
		if err == nil {
			m.acked[content] = m.log[len(m.log)-2]
		}
	}
	return err
}

func (m *model) read(ctx context.Context, tree vfs.Tree, a vfs.Attr) (string, error) {
	p := make([]byte, a.Size)
	k, err := tree.ReadAt(ctx, a.Ino, p, 0)
	return string(p[:k]), err
}

// found is a file.
type found struct {
	dir     vfs.Ino
	name    string
	ino     vfs.Ino
	content string
}

// look returns the files and directories of a tree, as far as they can be read now.
func (m *model) look(ctx context.Context, tree vfs.Tree) (files []found, dirs []vfs.Ino) {
	dirs = []vfs.Ino{vfs.RootIno}
	for i := 0; i < len(dirs); i++ {
		var list []vfs.Dirent
		_ = tree.ReadDir(ctx, dirs[i], 0, func(d vfs.Dirent) bool { // what cannot be read is not worked on
			list = append(list, d)
			return true
		})
		slices.SortFunc(list, func(a, b vfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
		for _, d := range list {
			if d.Type == vfs.TypeDir {
				dirs = append(dirs, d.Ino)
				continue
			}
			a, err := tree.Stat(ctx, d.Ino)
			if err != nil {
				continue
			}
			if content, err := m.read(ctx, tree, a); err == nil {
				files = append(files, found{dirs[i], d.Name, d.Ino, content})
			}
		}
	}
	return files, dirs
}

// finish mends everything and looks at what has come of it.
func (m *model) finish() {
	for _, n := range m.lab.nodes {
		n.wire.mend()
	}
	m.lab.settle()
	files, _ := m.look(context.Background(), m.lab.ws)
	there := make(map[string]bool)
	for _, f := range files {
		there[f.content] = true
	}
	m.t.Logf("%d contents, %d acknowledged, %d replaced, %d files left", m.serial, len(m.acked), len(m.replaced), len(files))
	for _, content := range slices.Sorted(maps.Keys(m.acked)) {
		if !there[content] && !m.replaced[content] {
			m.t.Errorf("%.8s was acknowledged and is gone: %s", content, m.acked[content])
		}
	}
	report, err := m.lab.nodes[0].store.Check(context.Background(), casstore.CheckOptions{Bytes: true})
	if err != nil || len(report.Problems) > 0 {
		m.t.Errorf("%s: %+v, %v", filepath.Base(m.lab.nodes[0].config.Dir), report.Problems, err)
	}
}
