package toolbox_test

import (
	"bytes"
	"compress/zlib"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// deflated is zlib's form of data.
func deflated(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plant puts a pack with an index into a repository; entries are the objects by their names.
func plant(t *testing.T, f treepath.FS, names []string, entries [][]byte) {
	t.Helper()
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00" + string(rune(len(entries))))
	w := new(idxfile.Writer)
	if err := w.OnHeader(uint32(len(entries))); err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		w.Add(plumbing.NewHash(names[i]), uint64(len(pack)), 0)
		pack = append(pack, e...)
	}
	sum := plumbing.NewHash(strings.Repeat("c", 40))
	pack = append(pack, sum[:]...)
	if err := w.OnFooter(sum); err != nil {
		t.Fatal(err)
	}
	index, err := w.Index()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := idxfile.NewEncoder(&b).Encode(index); err != nil {
		t.Fatal(err)
	}
	for suffix, data := range map[string][]byte{".pack": pack, ".idx": b.Bytes()} {
		if err := f.WriteFile(t.Context(), "/r/.git/objects/pack/pack-"+sum.String()+suffix, data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
}

// What somebody has put into a repository ends a command, and nothing else.
func TestGitDamaged(t *testing.T) {
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	ofA, ofB := plumbing.NewHash(a), plumbing.NewHash(b)
	refDelta := func(base plumbing.Hash, delta string) []byte {
		return append(append([]byte{0x70 | byte(len(delta))}, base[:]...), deflated(t, []byte(delta))...)
	}
	blob := func(text string) []byte { return append([]byte{0x30 | byte(len(text))}, deflated(t, []byte(text))...) }
	for name, entries := range map[string][][]byte{
		"a circle":            {refDelta(ofB, "\x01\x01\x01x"), refDelta(ofA, "\x01\x01\x01x")},
		"itself":              {refDelta(ofA, "\x01\x01\x01x"), blob("x")},
		"a huge result":       {refDelta(ofB, "\x01\xff\xff\xff\xff\xff\xff\x7f"), blob("x")},
		"another base":        {refDelta(ofB, "\x07\x01\x01x"), blob("x")},
		"none":                {refDelta(plumbing.NewHash(strings.Repeat("d", 40)), "\x01\x01\x01x"), blob("x")},
		"before the pack":     {append([]byte{0x64, 0xff, 0x7f}, deflated(t, []byte("\x01\x01\x01x"))...), blob("x")},
		"nothing inflated":    {{0x34, 1, 2, 3}, blob("x")},
		"less than it says":   {append([]byte{0x35}, deflated(t, []byte("x"))...), blob("x")},
		"an unknown type":     {append([]byte{0x51}, deflated(t, []byte("x"))...), blob("x")},
		"a size without end":  {bytes.Repeat([]byte{0xff}, 100), blob("x")},
		"a commit of nothing": {append([]byte{0x14}, deflated(t, []byte("xxxx"))...), blob("x")},
	} {
		f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
		if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
			t.Fatal(err)
		}
		ourGit(t, f, "git init -q -b main; echo a > a; git add a; git commit -qm one")
		plant(t, f, []string{a, b}, entries)
		for _, script := range []string{"git show " + a, "git rev-parse aaaa^{commit}", "git branch x " + a, "echo " + a + " > .git/refs/heads/x; git push . x:y", "git clone -q . ../c && cd ../c && git show " + a} {
			if out, status := tryGit(t, f, script); status == 0 || strings.Contains(out, "internal error") {
				t.Errorf("%s, %s: status %d\n%s", name, script, status, out)
			}
		}
		if out, status := tryGit(t, f, "rm -f .git/refs/heads/x; git log --oneline | cat; git status -s"); status != 0 {
			t.Errorf("%s: afterwards: status %d\n%s", name, status, out)
		}
	}
	for name, data := range map[string]string{
		"no head": strings.Repeat("x", 1<<20), "no type": "thing 1\x00x", "no size": "blob x\x00x", "more": "blob 1\x00" + strings.Repeat("x", 1<<20), "less": "blob 9\x00x",
		"negative": "blob -1\x00x", "nothing": "", "huge": "commit 99999999999\x00x",
	} {
		f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
		if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
			t.Fatal(err)
		}
		ourGit(t, f, "git init -q -b main; echo a > a; git add a; git commit -qm one; mkdir -p .git/objects/aa")
		if err := f.WriteFile(t.Context(), ".git/objects/aa/"+a[2:], deflated(t, []byte(data)), 0o444); err != nil {
			t.Fatal(err)
		}
		if out, status := tryGit(t, f, "git show "+a); (status == 0) != (name == "more") || len(out) > 1000 || strings.Contains(out, "internal error") {
			t.Errorf("%s: status %d\n%.1000s", name, status, out)
		}
	}
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
		t.Fatal(err)
	}
	ourGit(t, f, "git init -q -b main; echo a > a; git add a; git commit -qm one")
	for _, script := range []string{
		"echo /r/.git/objects > .git/objects/info/alternates; git show " + a,
		"rm .git/objects/info/alternates; yes | head -c 3000000 > .git/refs/heads/big; git branch big2 big",
		"rm .git/refs/heads/big; echo ref: refs/heads/l > .git/refs/heads/l; git show l",
		"git init -q x; echo 'gitdir: ../.git' > y; rm -r x/.git; mv y x/.git; cd x; echo 'gitdir: x' > ../z; cd ..; mkdir q; mv z q/.git; cd q; git status",
	} {
		if out, status := tryGit(t, f, script); status == 0 || strings.Contains(out, "internal error") {
			t.Errorf("%s: status %d\n%s", script, status, out)
		}
	}
}
