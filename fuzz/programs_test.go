package fuzz

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGoBuild builds packages of this project in the mount, with its sources and GOCACHE there, runs tests of them, and builds
// again, which must find everything in the cache.
func TestGoBuild(t *testing.T) {
	b := newBench(t)
	root := repositoryRoot(t)
	b.do("", "rsync", "-a", "--exclude=.git", root+"/", "src/")
	cache := filepath.Join(b.dir, "gocache")
	env := []string{"GOCACHE=" + cache, "CGO_ENABLED=0", "GOTMPDIR=" + filepath.Join(b.dir, "tmp"), "GOFLAGS=-buildvcs=false"}
	b.do("", "mkdir", "tmp")
	packages := strings.Fields(cmp.Or(os.Getenv("CARREL_BUILD"), "./fusefs"))
	build := func() time.Duration {
		start := time.Now()
		b.startProgram("src", env, append([]string{"go", "build"}, packages...)...).finish()
		return time.Since(start)
	}
	cold := build()
	b.startProgram("src", env, "go", "test", "-count=1", "./casstore/chunk", "./casstore/writebuf").finish()
	b.sameAfterRemount()
	t.Logf("build: %v, again after a mount with all in the cache: %v", cold, build())
	b.do("", "rm", "-rf", "gocache", "src", "tmp")
	b.verify()
}

// repositoryRoot returns the directory of go.mod.
func repositoryRoot(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the path of this file is not known")
	}
	root := filepath.Dir(filepath.Dir(file))
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestSQLite has four processes write into one database in WAL mode.
func TestSQLite(t *testing.T) {
	const writers, rows = 4, 150
	b := newBench(t)
	sql := func(text string) string {
		b.t.Helper()
		return strings.TrimSpace(b.do("", "sqlite3", "-cmd", ".timeout 60000", "db", text))
	}
	if mode := sql("PRAGMA journal_mode=WAL; CREATE TABLE t(writer INT, n INT, body BLOB, PRIMARY KEY(writer, n));"); mode != "wal" {
		t.Fatalf("journal mode %q", mode)
	}
	var children []*child
	for w := range writers {
		script := "PRAGMA synchronous=FULL;\n"
		for n := range rows {
			script += fmt.Sprintf("BEGIN IMMEDIATE; INSERT INTO t VALUES(%d, %d, randomblob(%d)); COMMIT;\n", w, n, 100+n*50)
			if n%50 == 25 {
				script += "PRAGMA wal_checkpoint(PASSIVE);\n"
			}
		}
		file := filepath.Join(b.outside, fmt.Sprint(w))
		if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		children = append(children,
			b.startProgram("", nil, "sqlite3", "-bail", "-cmd", ".timeout 60000", "db", ".read "+file))
	}
	for _, c := range children {
		c.finish()
	}
	verify := func() {
		t.Helper()
		if got := sql("PRAGMA integrity_check;"); got != "ok" {
			t.Errorf("integrity check: %s", got)
		}
		if got := sql("SELECT count(*), count(DISTINCT writer) FROM t;"); got != fmt.Sprintf("%d|%d", writers*rows, writers) {
			t.Errorf("rows: %s", got)
		}
	}
	verify()
	sum := sql("SELECT sum(length(body)), min(hex(body)), max(hex(body)) FROM t;")
	b.sameAfterRemount()
	verify()
	if again := sql("SELECT sum(length(body)), min(hex(body)), max(hex(body)) FROM t;"); again != sum {
		t.Error("the rows have changed")
	}
	sql("DELETE FROM t WHERE n % 2; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
	if got := sql("PRAGMA integrity_check;"); got != "ok" {
		t.Errorf("integrity check after VACUUM: %s", got)
	}
	b.verify()
}

// makeTree makes a tree with everything that rsync and tar can carry.
func makeTree(t testing.TB, dir string) {
	t.Helper()
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	do(unix.Mkdir(dir+"/d", 0o2775))
	do(unix.Mkdir(dir+"/sticky", 0o1777))
	do(os.Chmod(dir+"/sticky", 0o777|os.ModeSticky))
	do(os.WriteFile(dir+"/d/file", []byte("some bytes"), 0o640))
	do(os.Chown(dir+"/d/file", 1234, 4321))
	do(os.Link(dir+"/d/file", dir+"/hard"))
	do(os.WriteFile(dir+"/suid", []byte("x"), 0o755))
	do(os.Chmod(dir+"/suid", 0o755|os.ModeSetuid|os.ModeSetgid))
	do(os.Symlink("d/file", dir+"/link"))
	do(os.Symlink("nowhere", dir+"/dangling"))
	do(os.Lchown(dir+"/dangling", 7, 8))
	do(unix.Mkfifo(dir+"/fifo", 0o600))
	do(unix.Mknod(dir+"/device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	do(os.WriteFile(dir+"/name with\nnewline and \xff", nil, 0o600))
	do(unix.Setxattr(dir+"/d/file", "user.attribute", []byte("value\x00with NUL"), 0))
	do(unix.Setxattr(dir+"/d", "trusted.attribute", []byte{}, 0))
	do(os.WriteFile(dir+"/sparse", []byte("head"), 0o600))
	do(os.Truncate(dir+"/sparse", 50<<20))
	stamp := []unix.Timespec{{Sec: 1_000_000_000, Nsec: 123_456_789}, {Sec: 999_999_999, Nsec: 987_654_321}}
	for _, name := range []string{"/d/file", "/link", "/fifo", "/sparse", "/d", "/sticky"} {
		do(unix.UtimesNanoAt(unix.AT_FDCWD, dir+name, stamp, unix.AT_SYMLINK_NOFOLLOW))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestCopiers carries trees in and out by rsync, cp and tar; what comes out must be what went in.
func TestCopiers(t *testing.T) {
	b := newBench(t)
	source := filepath.Join(b.outside, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	makeTree(t, source)
	goroot := strings.TrimSpace(b.local(b.outside, "go", "env", "GOROOT"))
	b.local(b.outside, "cp", "-a", filepath.Join(goroot, "src", "net"), source)

	b.do("", "rsync", "-aHXS", source+"/", "rsync/")
	b.do("", "cp", "-a", source, "cp")
	b.do("", "mkdir", "tar")
	archive := filepath.Join(b.outside, "archive.tar")
	b.local(source, "tar", "--xattrs", "--xattrs-include=*", "-cSf", archive, ".")
	b.do("tar", "tar", "--xattrs", "--xattrs-include=*", "-xpSf", archive)
	for _, in := range []string{"rsync", "cp", "tar"} {
		b.sameTree(in, source)
	}
	b.do("", "cp", "-a", "cp", "cp-inside")
	b.sameTree("cp-inside", source)
	b.sameAfterRemount()
	for _, in := range []string{"rsync", "cp", "tar", "cp-inside"} {
		b.sameTree(in, source)
	}
	b.do("", "rsync", "-aHXS", "rsync/", filepath.Join(b.outside, "back")+"/")
	if got := b.local(b.outside, "rsync", "-aHXcni", "--delete", "source/", "back/"); got != "" {
		t.Errorf("what rsync has brought back differs:\n%s", got)
	}
	b.startProgram("cp", nil, "tar", "--xattrs", "--xattrs-include=*", "-cSf", filepath.Join(b.outside, "2.tar"), ".").finish()
	b.local(b.outside, "mkdir", "untarred")
	b.local(b.outside+"/untarred", "tar", "--xattrs", "--xattrs-include=*", "-xpSf", "../2.tar")
	if got := b.local(b.outside, "rsync", "-aHXcni", "--delete", "source/", "untarred/"); got != "" {
		t.Errorf("what tar has brought back differs:\n%s", got)
	}
}

// sameTree compares a directory in the mount with one outside: bytes, names, modes, owners, times, links, attributes.
func (b *bench) sameTree(in, outside string) {
	b.t.Helper()
	if got := b.do("", "rsync", "-aHXcni", "--delete", outside+"/", in+"/"); got != "" {
		b.t.Errorf("%s differs:\n%s", in, tail(got))
	}
	blocks := strings.Fields(b.do(in, "stat", "-c", "%b %s", "sparse"))
	if blocks[0] == fmt.Sprint(50<<11) {
		b.t.Errorf("%s/sparse is not sparse any more: %s blocks of %s bytes", in, blocks[0], blocks[1])
	}
}

// TestEditors saves files as editors do, and has processes write to mapped memory.
func TestEditors(t *testing.T) {
	b := newBench(t)
	b.run("", editor)
	b.run("", mapper)
	b.sameAfterRemount()
	b.run("", mapReader)
}

// editor saves a file many times: a temporary file is written, synced and renamed over the last one, and the directory is
// synced. Whoever reads meanwhile sees one of the versions, whole.
var editor = worker("edit", func([]string) error {
	stop, result := make(chan struct{}), make(chan error)
	if err := saveVersion(0); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-stop:
				result <- nil
				return
			default:
			}
			got, err := os.ReadFile("document")
			if err == nil {
				err = oneVersion(got)
			}
			if err != nil {
				<-stop
				result <- err
				return
			}
		}
	}()
	var err error
	for i := 1; i < 300 && err == nil; i++ {
		err = saveVersion(i)
	}
	close(stop)
	return errors.Join(err, <-result)
})

func saveVersion(i int) error {
	temp := fmt.Sprintf(".document.%d~", i)
	b := make([]byte, 20_000+i)
	fill(b, uint64(i), 0)
	if err := os.WriteFile(temp, b, 0o644); err != nil {
		return err
	}
	if err := syncPath(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, "document"); err != nil {
		return err
	}
	return syncPath(".")
}

func oneVersion(b []byte) error {
	want := make([]byte, len(b))
	if fill(want, uint64(len(b)-20_000), 0); string(want) != string(b) {
		return fmt.Errorf("a reader sees %d bytes of no version", len(b))
	}
	return nil
}

const mappedSize = 3<<20 + 123

// mapper writes a file through shared mapped memory, over several pages and by two mappings, one of which it only reads.
var mapper = worker("map", func([]string) error {
	fd, err := unix.Open("mapped", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, mappedSize); err != nil {
		return err
	}
	shared, err := unix.Mmap(fd, 0, mappedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	private, err := unix.Mmap(fd, 0, mappedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	fill(shared, 1, 0)
	if private[mappedSize-1] != shared[mappedSize-1] {
		return errors.New("two mappings of a file differ")
	}
	private[0]++ // nobody else sees it
	if err := unix.Msync(shared[:1<<20], unix.MS_SYNC); err != nil {
		return err
	}
	return errors.Join(unix.Munmap(shared), unix.Munmap(private), unix.Fsync(fd), unix.Close(fd), readMapped())
})

var mapReader = worker("read-mapped", func([]string) error { return readMapped() })

// readMapped checks by read and by mapped memory what mapper has written.
func readMapped() error {
	want := make([]byte, mappedSize)
	fill(want, 1, 0)
	got, err := os.ReadFile("mapped")
	if err != nil || string(got) != string(want) {
		return errors.Join(err, fmt.Errorf("read %d bytes that were not written to mapped memory", len(got)))
	}
	fd, err := unix.Open("mapped", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	memory, err := unix.Mmap(fd, 0, mappedSize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if string(memory) != string(want) {
		return errors.New("mapped memory is not what was written")
	}
	return errors.Join(unix.Munmap(memory), unix.Close(fd))
}
