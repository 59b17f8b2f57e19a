package fuzz

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxLargeDirMemory bounds what a daemon takes, at its most, while a directory of 200,000 entries or fewer is worked with: its
	// heap at the limit, and what it has mapped.
	maxLargeDirMemory = memoryLimit + 50<<20

	// maxFirstEntries is how long the first entries of a directory may take, however many follow, unless the machine is so busy
	// that all of them take more than twice as long.
	maxFirstEntries = 200 * time.Millisecond
)

// TestLargeDirectory makes, lists, and removes a directory of very many entries, which are in memory the first time and
// only in the store the second.
func TestLargeDirectory(t *testing.T) {
	entries := number(t, "CARREL_ENTRIES", 50_000)
	d := serve(t, tempDir(t), tempDir(t))
	d.timed("make", func() { d.run("", manyMaker, "large", fmt.Sprint(entries)) })
	d.list("large", entries)
	d.check("check")
	d = d.restart()
	d.list("large", entries)
	d.timed("find", func() {
		if n := strings.Count(d.do("", "find", "large", "-type", "f", "-links", "1"), "\n"); n != entries {
			t.Errorf("find finds %d files of %d", n, entries)
		}
	})
	d.timed("remove a half while listing", func() { d.run("", halfRemover, "large", fmt.Sprint(entries)) })
	d.list("large", entries/2)
	d.timed("rm -rf", func() { d.do("", "rm", "-rf", "large") })
	if got := d.do("", "ls", "-A", "."); got != "" {
		t.Errorf("left after rm: %q", got)
	}
	d.verify()
}

// timed runs f, and logs how long it took and what memory the daemon has taken at the most, which must be bounded.
func (d *daemon) timed(what string, f func()) {
	d.t.Helper()
	start := time.Now()
	f()
	memory := d.memory("VmHWM")
	d.t.Logf("%s: %v, VmHWM %d MiB", what, time.Since(start).Round(time.Millisecond), memory>>20)
	if memory > maxLargeDirMemory {
		d.t.Errorf("the daemon took %d MiB", memory>>20)
	}
}

// list lists a directory, whose first entries must come at once.
func (d *daemon) list(dir string, entries int) {
	d.t.Helper()
	d.timed("list", func() {
		d.t.Helper()
		out := strings.Fields(d.run("", dirReader, dir))
		first, err := time.ParseDuration(out[0])
		all, allErr := time.ParseDuration(out[2])
		if err := errors.Join(err, allErr); err != nil || out[1] != strconv.Itoa(entries) {
			d.t.Fatalf("%s; %d entries were made: %v", out, entries, err)
		}
		if d.t.Logf("first entries after %v, all after %v", first, all); first > max(maxFirstEntries, all/2) {
			d.t.Errorf("the first entries came after %v, all after %v", first, all)
		}
	})
}

// manyMaker makes a directory of so many empty files.
var manyMaker = worker("make-many", func(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	for i := range n {
		if err := unix.Mknod(fmt.Sprintf("entry-%d", i), unix.S_IFREG|0o644, 0); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
})

// dirReader says how long the first entries of a directory take, how many there are, and how long all take. None may come
// twice.
var dirReader = worker("read-dir", func(args []string) error {
	seen := make(map[string]bool)
	var first time.Duration
	start := time.Now()
	err := eachEntry(args[0], func(name string) error {
		if first == 0 {
			first = time.Since(start)
		}
		if seen[name] {
			return fmt.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		return nil
	})
	fmt.Println(first, len(seen), time.Since(start))
	return err
})

// eachEntry calls f for the names in a directory as they come.
func eachEntry(dir string, f func(name string) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, b)
		if err != nil || n == 0 {
			return err
		}
		_, _, names := unix.ParseDirent(b[:n], -1, nil)
		for _, name := range names {
			if err := f(name); err != nil {
				return err
			}
		}
	}
}

// halfRemover removes half of a directory's entries while it lists it: all others must be listed, and none twice.
var halfRemover = worker("remove-half", func(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seen := make(map[int]bool)
	err = eachEntry(args[0], func(name string) error {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "entry-"))
		if err != nil || seen[i] {
			return errors.Join(err, fmt.Errorf("%s is listed again", name))
		}
		seen[i] = true
		if i%2 == 0 {
			return nil
		}
		return os.Remove(args[0] + "/" + name)
	})
	if err == nil && len(seen) != n {
		err = fmt.Errorf("%d of %d entries were listed", len(seen), n)
	}
	return err
})
