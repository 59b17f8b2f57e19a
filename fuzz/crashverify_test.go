package fuzz

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// scriptVerifier checks a directory after a crash, and says how many steps were done and up to which of them the
// names are acknowledged.
var scriptVerifier = worker("script-verify", func(args []string) error {
	seed, round, log, err := scriptArgs(args)
	if err != nil {
		return err
	}
	if err := os.Chdir(roundDir(round)); err != nil {
		return err
	}
	v := &verifier{seed: seed, round: uint64(round)}
	if v.root, v.inos, err = readJournal(log); err != nil {
		return err
	}
	if err := v.verify(); err != nil {
		return err
	}
	fmt.Println(len(v.inos), v.acked)
	return nil
})

// verifier compares a directory with what a script has made of it.
type verifier struct {
	seed, round uint64
	root        uint64
	inos        []uint64 // by step that is done; one more may have been under way
	acked       int      // how many steps come before the last fsync that is done
	found       map[foundName]uint64
	sum         uint64 // over the hashes of what is found
}

// foundName is a name in the directory with that number.
type foundName struct {
	dir  uint64
	name string
	typ  byte
}

func (v *verifier) verify() error {
	if err := v.look(); err != nil {
		return err
	}
	steps, err := v.state()
	if err != nil {
		return err
	}
	s := v.replay(steps)
	var errs []error
	for _, e := range s.entries {
		if err := v.verifyNode(e); err != nil {
			errs = append(errs, fmt.Errorf("%s, node %d: %w", e.path(), e.node.id, err))
		}
	}
	return errors.Join(errs...)
}

// look collects the names that are there.
func (v *verifier) look() error {
	v.found = make(map[foundName]uint64)
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		dir, err := inoOf(filepath.Dir(path))
		if err != nil {
			return err
		}
		ino, err := inoOf(path)
		if err != nil {
			return err
		}
		typ := byte('f')
		switch d.Type() {
		case fs.ModeDir:
			typ = 'd'
		case fs.ModeSymlink:
			typ = 'l'
		}
		v.found[foundName{dir, d.Name(), typ}] = ino
		v.sum ^= hashEntry(dir, d.Name(), ino, typ)
		return nil
	})
}

// replay returns the script after a number of steps.
func (v *verifier) replay(steps int) *script {
	s := newScript(v.seed, v.round)
	s.root.ino = v.root
	for s.count < steps {
		v.step(s)
	}
	return s
}

// step does one step of a script, and notes what it acknowledges.
func (v *verifier) step(s *script) {
	i := s.count
	st := s.next()
	done := i < len(v.inos)
	if st.kind.makes() {
		if done {
			s.settle(st, v.inos[i])
		} else {
			s.settle(st, v.found[foundName{st.dir.ino, st.name, st.node.typ}]) // zero if it was not carried out
		}
	}
	if done && st.kind == stepFsync {
		st.node.ackEdits, st.node.ackModes, st.node.ackAttrs = len(st.node.edits), len(st.node.modes), len(st.node.attrs)
	}
	if done && st.kind.syncs() {
		v.acked = i
	}
}

// state returns after how many steps the names are those that are found. Of several numbers it is the largest.
func (v *verifier) state() (int, error) {
	s := v.replay(0)
	v.acked = 0
	var same []int
	for ; ; v.step(s) {
		if s.sum == v.sum {
			same = append(same, s.count)
		}
		if s.count > len(v.inos) {
			break
		}
	}
	if n := len(same); n > 0 && same[n-1] >= v.acked {
		return same[n-1], nil
	}
	return 0, fmt.Errorf("after %d steps, %d acknowledged, the names are those after %v\n%s",
		len(v.inos), v.acked, same, v.difference())
}

// difference says how the names differ from those at the last fsync and at the end.
func (v *verifier) difference() string {
	var out strings.Builder
	for _, steps := range []int{v.acked, len(v.inos)} {
		fmt.Fprintf(&out, "against the names after step %d:\n", steps)
		missing := make(map[foundName]uint64)
		for _, e := range v.replay(steps).entries {
			missing[foundName{e.dir.ino, e.name, e.node.typ}] = e.node.ino
		}
		for name, ino := range v.found {
			if missing[name] != ino {
				fmt.Fprintf(&out, "+ %d/%s: %d, not %d\n", name.dir, name.name, ino, missing[name])
			}
			delete(missing, name)
		}
		for name, ino := range missing {
			fmt.Fprintf(&out, "- %d/%s: %d\n", name.dir, name.name, ino)
		}
	}
	return out.String()
}

// verifyNode checks a node that is found under an entry; the script is at the state of the names.
func (v *verifier) verifyNode(e *entry) error {
	n := e.node
	var st unix.Stat_t
	if err := unix.Lstat(e.path(), &st); err != nil {
		return err
	}
	switch n.typ {
	case 'l':
		target, err := os.Readlink(e.path())
		if err == nil && target != n.target {
			err = fmt.Errorf("leads to %q, not %q", target, n.target)
		}
		return err
	case 'd':
		return nil
	}
	if mode := uint32(st.Mode & 0o7777); !slices.Contains(n.modes[max(n.ackModes, 1)-1:], mode) {
		return fmt.Errorf("has mode %o, not one of %o", mode, n.modes[max(n.ackModes, 1)-1:])
	}
	if err := verifyAttribute(e.path(), n.attrs[max(n.ackAttrs, 1)-1:]); err != nil {
		return err
	}
	least := n.ackEdits
	for _, r := range n.renames {
		least = max(least, r.edits)
	}
	f, err := os.Open(e.path())
	if err != nil {
		return err
	}
	defer f.Close()
	if n.bulk {
		return verifyBulk(f, st.Size, n.edits, least)
	}
	return verifyEdits(f, n.edits, least)
}

// verifyAttribute checks that the attribute has one of some values.
func verifyAttribute(path string, values []uint32) error {
	b := make([]byte, 64<<10)
	n, err := unix.Getxattr(path, attribute, b)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		return err
	}
	if value := uint32(max(n, 0) / 1000); !slices.Contains(values, value) || !bytes.Equal(b[:max(n, 0)], attributeOf(value)) {
		return fmt.Errorf("has an attribute of %d bytes, not one of %d thousand", n, values)
	}
	return nil
}

// verifyBulk checks that a file is a beginning of what was appended to it, and that at least a number of edits is whole.
func verifyBulk(f io.Reader, size int64, edits []edit, least int) error {
	for i, e := range edits {
		have := min(e.size, uint64(size)-min(uint64(size), e.off))
		if have < e.size && i < least {
			return fmt.Errorf("has %d bytes, but edit %d of step %d up to %d is acknowledged", size, i, e.step, e.off+e.size)
		}
		want, got := make([]byte, have), make([]byte, have)
		fill(want, e.stamp, e.off)
		if _, err := io.ReadFull(f, got); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("edit %d of step %d at %d is damaged", i, e.step, e.off)
		}
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("has %d bytes, more than were written", size)
	}
	return nil
}

// verifyEdits checks that a file is as it was after some edit, the last of least or a later one, or in the middle of one:
// a write that begins in a page that the kernel has not cached comes as two requests (fuse_fill_write_pages in Linux), and
// a commit may come between them.
func verifyEdits(f io.Reader, edits []edit, least int) error {
	got, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	var state []byte
	for i := 0; ; i++ {
		if i >= least && bytes.Equal(state, got) {
			return nil
		}
		if i == len(edits) {
			break
		}
		if i >= least && edits[i].tornIn(got, state) {
			return nil
		}
		state = edits[i].applyTo(state)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "has %d bytes that it never had after edit %d of %d:", len(got), least, len(edits))
	state = nil
	for i, e := range edits {
		state = e.applyTo(state)
		fmt.Fprintf(&text, "\nedit %d, step %d: truncate=%t [%d,+%d) → size %d, equal=%t",
			i, e.step, e.truncate, e.off, e.size, len(state), bytes.Equal(state, got))
	}
	return errors.New(text.String())
}

// tornIn reports whether a file that had these bytes before is one in which the edit was done up to the end of a page.
func (e edit) tornIn(got, before []byte) bool {
	const page = 4 << 10
	for end := (e.off/page + 1) * page; !e.truncate && end < e.off+e.size; end += page {
		part := e
		part.size = end - e.off
		if bytes.Equal(part.applyTo(slices.Clone(before)), got) {
			return true
		}
	}
	return false
}

// applyTo returns the bytes of a file after the edit.
func (e edit) applyTo(b []byte) []byte {
	end := int(e.off + e.size)
	if len(b) < end {
		b = append(b, make([]byte, end-len(b))...)
	}
	if e.truncate {
		return b[:end:end]
	}
	fill(b[e.off:end], e.stamp, e.off)
	return b
}

// hashFile returns a hash of the bytes of a file.
func hashFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
