package vfstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest/seed"
)

// Seed is [seed.Of]. A run of [Random] that fails prints the line that sets the variable.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return seed.Of(t)
}

// Between is what happens to the tree under test between two steps of [Random]: a commit, a collection, a crash that
// loses nothing. It returns the tree to go on with. When that is another one, what was held of the old one is not any
// more.
type Between func(step int, tree vfs.Tree) vfs.Tree

// Random does the same random operations to tree and model, which hold the same at first, and ends the test at the first
// difference: errors by sentinel, attributes but for inode numbers, times, Blocks and the size of directories, bytes,
// names, attributes, targets. What the contract leaves open is not compared. Now and then it compares everything and
// audits the tree. between may be nil. The same seed gives the same steps.
func Random(t testing.TB, seed uint64, steps int, tree, model vfs.Tree, between Between) {
	t.Helper()
	r := &random{
		TB: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), tree: tree, model: model,
		twins: map[vfs.Ino]vfs.Ino{vfs.RootIno: vfs.RootIno}, known: []vfs.Ino{vfs.RootIno}, held: make(map[vfs.Ino]uint64),
	}
	r.learnAll(vfs.RootIno)
	for r.step = range steps {
		if between != nil {
			r.between(between)
		}
		r.once()
		if r.step%randomCompareEvery == randomCompareEvery-1 {
			r.compareAll()
		}
	}
	r.releaseAll()
	r.compareAll()
}

// random is one run of Random. Inodes are known by their number in the model.
type random struct {
	testing.TB
	seed        uint64
	step        int
	rand        *rand.Rand
	tree, model vfs.Tree
	twins       map[vfs.Ino]vfs.Ino // from the model's number to the tree's
	known       []vfs.Ino           // in the order of learning; a few may be gone
	held        map[vfs.Ino]uint64
	log         []string // what the last steps were
}

// side is a tree with the way to its inode numbers.
type side struct {
	vfs.Tree
	ino func(vfs.Ino) vfs.Ino
}

func (r *random) sides() (tree, model side) {
	return side{r.tree, func(ino vfs.Ino) vfs.Ino { return r.twins[ino] }},
		side{r.model, func(ino vfs.Ino) vfs.Ino { return ino }}
}

func (r *random) ctx() context.Context { return r.Context() }

// say notes what the step does, for the report of a failure.
func (r *random) say(format string, args ...any) {
	if len(r.log) == randomLog {
		r.log = r.log[1:]
	}
	r.log = append(r.log, fmt.Sprintf("%d: ", r.step)+fmt.Sprintf(format, args...))
}

// differ ends the test.
func (r *random) differ(format string, args ...any) {
	r.Helper()
	const report = "%s\nseed %d, step %d; the last steps, with the model's inode numbers:\n\t%s\n" +
		"rerun, in the package's folder:\n\t%s"
	r.Fatalf(report,
		fmt.Sprintf(format, args...), r.seed, r.step, strings.Join(r.log, "\n\t"), r.rerun())
}

// rerun is the line that does the same again.
func (r *random) rerun() string {
	parts := strings.Split(r.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return fmt.Sprintf("%s=%d go test -race -count=1 -run '%s' .", seed.Variable, r.seed, strings.Join(parts, "/"))
}

// between lets f do something to the tree.
func (r *random) between(f Between) {
	r.Helper()
	next := f(r.step, r.tree)
	if next == r.tree {
		return
	}
	r.say("another tree")
	for ino, n := range r.held {
		r.model.Release(ino, n)
	}
	clear(r.held)
	r.tree = next
	r.compareAll()
}

// learn notes that two inodes are the same.
func (r *random) learn(tree, model vfs.Ino) {
	r.Helper()
	if was, ok := r.twins[model]; ok {
		if was != tree {
			r.differ("inode %d of the model was %d in the tree, and now is %d", model, was, tree)
		}
		return
	}
	r.twins[model] = tree
	r.known = append(r.known, model)
}

// learnAll learns what is below a directory at the start.
func (r *random) learnAll(dir vfs.Ino) {
	r.Helper()
	tree, model := r.sides()
	entries, err := list(r.ctx(), model, dir, 0)
	if err != nil {
		r.differ("model: %v", err)
	}
	for _, e := range entries {
		a, err := tree.Lookup(r.ctx(), tree.ino(dir), e.Name)
		if err != nil {
			r.differ("only the model has %d/%q: %v", dir, e.Name, err)
		}
		r.learn(a.Ino, e.Ino)
		if e.Type == vfs.TypeDir {
			r.learnAll(e.Ino)
		}
	}
}

// sentinel returns the error of package vfs that err wraps; err itself when it wraps none.
func sentinel(err error) error {
	for _, s := range vfs.Errors() {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// agree ends the test unless both errors are nil or of one sentinel. Of an operation with more than one fault, faults
// are the errors that would do as well. It reports whether the operation was done.
func (r *random) agree(tree, model error, faults ...error) bool {
	r.Helper()
	a, b := sentinel(tree), sentinel(model)
	if a != b && (a == nil || b == nil || !slices.Contains(faults, a)) {
		r.differ("the tree says %v, the model says %v", tree, model)
	}
	return b == nil
}

// attr does an operation that returns attributes to both sides, and compares.
func (r *random) attr(f func(s side) (vfs.Attr, error), faults ...error) {
	r.Helper()
	tree, model := r.sides()
	b, modelErr := f(model)
	a, treeErr := f(tree)
	if r.agree(treeErr, modelErr, faults...) {
		r.learn(a.Ino, b.Ino)
		r.sameAttr(a, b)
	}
}

// err does an operation that returns only an error to both sides, and compares.
func (r *random) err(f func(s side) error, faults ...error) bool {
	r.Helper()
	tree, model := r.sides()
	modelErr := f(model)
	return r.agree(f(tree), modelErr, faults...)
}

// sameAttr compares attributes of the tree with the model's.
func (r *random) sameAttr(a, b vfs.Attr) {
	r.Helper()
	tree, model := a, b
	b.Ino = r.twins[b.Ino]
	if b.Type == vfs.TypeDir {
		b.Parent = r.twins[b.Parent]
		a.Size, b.Size = 0, 0
	}
	if b.Type == vfs.TypeDir && b.Nlink == 0 { // what a removed directory was in is nobody's business
		a.Parent, b.Parent = 0, 0
	}
	for _, x := range []*vfs.Attr{&a, &b} {
		x.Blocks, x.Atime, x.Mtime, x.Ctime = 0, 0, 0, 0
	}
	if a != b {
		r.differ("the tree says %+v, the model says %+v", tree, model)
	}
}

// compareAll compares all of both trees, and what is only held.
func (r *random) compareAll() {
	r.Helper()
	r.forget()
	a, err := Snapshot(r.ctx(), r.tree)
	if err != nil {
		r.differ("tree: %v", err)
	}
	b, err := Snapshot(r.ctx(), r.model)
	if err != nil {
		r.differ("model: %v", err)
	}
	if d := Diff(b, a); d != "" {
		r.differ("the model (-) and the tree (+) differ:\n%s", d)
	}
	if err := Audit(r.ctx(), r.tree); err != nil {
		r.differ("%v", err)
	}
	for ino := range r.held {
		r.compareNode(ino)
	}
}

// compareNode compares one inode, which may have no name.
func (r *random) compareNode(ino vfs.Ino) {
	r.Helper()
	a, err := readNode(r.ctx(), r.tree, r.twins[ino])
	b, modelErr := readNode(r.ctx(), r.model, ino)
	if !r.agree(err, modelErr) {
		return
	}
	if x, y := b.line("", false), a.line("", false); x != y {
		r.differ("inode %d: the model (-) and the tree (+) differ:\n- %s\n+ %s", ino, x, y)
	}
}

// releaseAll takes back every hold from both sides.
func (r *random) releaseAll() {
	for ino, n := range r.held {
		r.tree.Release(r.twins[ino], n)
		r.model.Release(ino, n)
	}
	clear(r.held)
}

// forget drops inodes that are gone from what is known, but for the last few, which operations go on to use. Both
// sides must agree that they are gone.
func (r *random) forget() {
	r.Helper()
	var gone []vfs.Ino
	for _, ino := range r.known {
		_, err := r.model.Stat(r.ctx(), ino)
		if _, treeErr := r.tree.Stat(r.ctx(), r.twins[ino]); !r.agree(treeErr, err) {
			gone = append(gone, ino)
		}
	}
	gone = gone[:max(0, len(gone)-randomGone)]
	r.known = slices.DeleteFunc(r.known, func(ino vfs.Ino) bool { return slices.Contains(gone, ino) })
	for _, ino := range gone {
		delete(r.twins, ino)
	}
}
