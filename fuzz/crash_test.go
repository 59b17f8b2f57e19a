package fuzz

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// TestCrash kills the daemon at random moments while one process follows a script and notes, outside the mount, which
// steps are done. After each crash the store is whole; the names are those after some step, which is the last fsync or
// a later one; every file has bytes that it had, at least as new as its last fsync and the last rename that is seen;
// and what was found after the crash before is still there.
func TestCrash(t *testing.T) { testCrash(t, number(t, "CARREL_ROUNDS", 30)) }

// TestCrashEncrypted is TestCrash for an encrypted store.
func TestCrashEncrypted(t *testing.T) {
	t.Setenv(encryptedEnv, "1")
	testCrash(t, number(t, "CARREL_ROUNDS", 10))
}

func testCrash(t *testing.T, rounds int) {
	seed := vfstest.Seed(t)
	c := &crashes{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)),
		store: tempDir(t), dir: tempDir(t), logs: tempDir(t), found: make(map[int]string),
	}
	t.Logf("VFSTEST_SEED=%d", seed)
	for round := range rounds {
		c.round(round)
		if t.Failed() {
			t.Fatalf("round %d of VFSTEST_SEED=%d; the store is lost with the test's directory", round, seed)
		}
	}
	d := c.recover(rounds)
	d.verify()
	t.Logf("%d rounds: %d steps, %d of them acknowledged", rounds, c.steps, c.acked)
}

type crashes struct {
	t                testing.TB
	seed             uint64
	rand             *rand.Rand
	store, dir, logs string
	found            map[int]string // by round, a fingerprint of its directory after the crash
	steps, acked     int
}

// round brings the store up, checks what the round before has left, and has the daemon killed during new work.
func (c *crashes) round(round int) {
	d := c.recover(round)
	work := []*child{d.start("", scriptWriter, c.args(round)...)}
	if c.rand.IntN(4) == 0 {
		work = append(work, d.start("", bulkWriter, strconv.Itoa(round)))
	}
	if c.rand.IntN(3) == 0 {
		d.tell("gc") // to be killed in the middle, or not
	}
	<-time.After(c.lifetime())
	d.kill()
	for _, w := range work {
		w.finish()
	}
	for c.rand.IntN(5) == 0 { // and once more while it starts
		d := launch(c.t, c.store, c.dir)
		<-time.After(time.Duration(c.rand.IntN(120)) * time.Millisecond)
		d.kill()
	}
}

// lifetime is short most times, and now and then so long that the store commits by itself and collects.
func (c *crashes) lifetime() time.Duration {
	if c.rand.IntN(8) == 0 {
		return time.Duration(600+c.rand.IntN(2000)) * time.Millisecond
	}
	return time.Duration(40+c.rand.IntN(400)) * time.Millisecond
}

func (c *crashes) args(round int) []string {
	return []string{fmt.Sprint(c.seed), fmt.Sprint(round), filepath.Join(c.logs, fmt.Sprint(round))}
}

// recover starts the daemon and checks everything that must have survived the rounds before.
func (c *crashes) recover(round int) *daemon {
	d := serve(c.t, c.store, c.dir)
	d.check("check")
	last := round - 1
	if last < 0 {
		return d
	}
	if want, ok := c.found[last-1]; ok {
		if got := d.run("", fingerprinter, roundDir(last-1)); got != want {
			c.t.Errorf("what was found after the crash of round %d has changed:\n%s\nbefore:\n%s", last-1, got, want)
		}
	}
	if info, err := os.Stat(c.args(last)[2]); err != nil || info.Size() == 0 {
		return d // it was killed before the work began
	}
	var steps, acked int
	if _, err := fmt.Sscan(d.run("", scriptVerifier, c.args(last)...), &steps, &acked); err != nil {
		c.t.Error(err)
	}
	c.steps += steps
	c.acked += acked
	c.found[last] = d.run("", fingerprinter, roundDir(last))
	return d
}

func roundDir(round int) string { return fmt.Sprintf("r%d", round) }

// journal is what the writer of a script notes: "STEP INO" for each step that is done, with the number of the node that
// it has made or zero. The first line is that of the script's root, as step -1.
type journal struct {
	file *os.File
}

func (j journal) note(step int, ino uint64) error {
	_, err := fmt.Fprintln(j.file, step, ino)
	return err
}

// readJournal returns the number of the root, and of what each step has made.
func readJournal(path string) (root uint64, inos []uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var step int
		var ino uint64
		if _, err := fmt.Sscan(scan.Text(), &step, &ino); err != nil {
			return 0, nil, err
		}
		switch {
		case step == -1:
			root = ino
		case step == len(inos):
			inos = append(inos, ino)
		default:
			return 0, nil, fmt.Errorf("journal: step %d after %d", step, len(inos))
		}
	}
	return root, inos, nil
}

// gone reports whether err says that the daemon has been killed.
//
// EIO says it too, when the daemon was killed while the kernel handed it the request; then the next one shows it.
func gone(err error) bool {
	if errors.Is(err, unix.EIO) {
		var st unix.Statfs_t
		err = unix.Statfs(".", &st)
	}
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

var scriptWriter = worker("script-write", func(args []string) error {
	seed, round, log, err := scriptArgs(args)
	if err != nil {
		return err
	}
	if err := writeScript(seed, round, log); !gone(err) {
		return err
	}
	return nil
})

func scriptArgs(args []string) (seed uint64, round int, log string, err error) {
	if seed, err = strconv.ParseUint(args[0], 10, 64); err != nil {
		return 0, 0, "", err
	}
	round, err = strconv.Atoi(args[1])
	return seed, round, args[2], err
}

// writeScript follows a script until the daemon is gone.
func writeScript(seed uint64, round int, log string) error {
	for old := range round - 1 { // the last one is still to be compared
		if err := os.RemoveAll(roundDir(old)); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	j := journal{file}
	if err := os.Mkdir(roundDir(round), 0o755); err != nil {
		return err
	}
	if err := syncPath("."); err != nil {
		return err
	}
	if err := os.Chdir(roundDir(round)); err != nil {
		return err
	}
	ino, err := inoOf(".")
	if err != nil {
		return err
	}
	s := newScript(seed, uint64(round))
	s.root.ino = ino
	for err := j.note(-1, ino); ; err = j.note(s.count-1, ino) {
		if err != nil {
			return err
		}
		st := s.next()
		if ino, err = carryOut(st); err != nil {
			return fmt.Errorf("step %d, %s %s %s: %w", s.count-1, stepNames[st.kind], st.path, st.newPath, err)
		}
		if st.kind.makes() {
			s.settle(st, ino)
		}
	}
}

// carryOut does a step by one system call that changes something. It returns the number of the node that it has made.
func carryOut(st step) (ino uint64, err error) {
	switch st.kind {
	case stepCreate:
		fd, err := unix.Open(st.path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, st.mode)
		if err != nil {
			return 0, err
		}
		if err := unix.Close(fd); err != nil {
			return 0, err
		}
	case stepMkdir:
		err = unix.Mkdir(st.path, 0o755)
	case stepSymlink:
		err = unix.Symlink(st.node.target, st.path)
	case stepLink:
		return 0, unix.Link(st.path, st.newPath)
	case stepUnlink:
		return 0, unix.Unlink(st.path)
	case stepRmdir:
		return 0, unix.Rmdir(st.path)
	case stepRename:
		return 0, unix.Rename(st.path, st.newPath)
	case stepWrite:
		return 0, writeAt(st.path, st.edit)
	case stepTruncate:
		return 0, unix.Truncate(st.path, int64(st.edit.off))
	case stepChmod:
		return 0, unix.Chmod(st.path, st.mode)
	case stepSetxattr:
		return 0, setAttribute(st.path, st.mode)
	case stepFsync, stepFsyncDir:
		return 0, syncPath(st.path)
	}
	if err != nil {
		return 0, err
	}
	return inoOf(st.path)
}

// attribute is the name of the attribute that scripts set.
const attribute = "user.script"

// setAttribute sets the attribute to a long value that stands for a number, or removes it for zero.
func setAttribute(path string, value uint32) error {
	if value > 0 {
		return unix.Setxattr(path, attribute, attributeOf(value), 0)
	}
	if err := unix.Removexattr(path, attribute); !errors.Is(err, unix.ENODATA) {
		return err
	}
	return nil
}

func attributeOf(value uint32) []byte {
	b := make([]byte, 1000*value)
	fill(b, uint64(value), 0)
	return b
}

func inoOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return st.Ino, err
}

func writeAt(path string, e edit) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b := make([]byte, e.size)
	fill(b, e.stamp, e.off)
	for off := int64(e.off); len(b) > 0 && err == nil; {
		var n int
		n, err = unix.Pwrite(fd, b, off) // short when the daemon is killed in the middle
		b, off = b[max(n, 0):], off+int64(n)
	}
	return errors.Join(err, unix.Close(fd))
}

func syncPath(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsync(fd), unix.Close(fd))
}

// bulkWriter keeps the store busy beside a script: it copies large files over each other until the daemon is gone.
var bulkWriter = worker("bulk", func(args []string) error {
	if err := writeBulk(args[0]); !gone(err) {
		return err
	}
	return nil
})

func writeBulk(round string) error {
	if err := os.MkdirAll("bulk", 0o755); err != nil {
		return err
	}
	for i := 0; ; i++ {
		path := fmt.Sprintf("bulk/%d", i%3)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		stamp := mix(uint64(len(round))<<32 ^ uint64(i))
		b := make([]byte, 1<<20)
		for off := uint64(0); off < 40<<20 && err == nil; off += uint64(len(b)) {
			fill(b, stamp, off)
			_, err = unix.Pwrite(fd, b, int64(off))
		}
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return err
		}
	}
}

// fingerprinter says what is in a directory, a line for each path.
var fingerprinter = worker("fingerprint", func(args []string) error {
	text, err := fingerprint(args[0])
	fmt.Print(text)
	return err
})

func fingerprint(dir string) (string, error) {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %d mode=%o links=%d size=%d mtime=%d", path, st.Ino, st.Mode, st.Nlink, st.Size, st.Mtim.Nano())
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			sum, err := hashFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %x", sum)
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %s", target)
		}
		out.WriteByte('\n')
		return nil
	})
	return out.String(), err
}
