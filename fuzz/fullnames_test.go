package fuzz

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullOfNames fills a small disk without a byte in a file: with directories, symlinks, links and attributes. When all
// of them have been removed there is room for as many again, or half as many, also after a restart.
func TestFullOfNames(t *testing.T) {
	store, _ := smallStore(t, tinyDisk)
	d := serve(t, store, tempDir(t))
	room := 1000
	for cycle := range 2 {
		names, err := strconv.Atoi(strings.TrimSpace(d.run("", nameFiller)))
		if err != nil || names < room {
			t.Fatalf("cycle %d: %d names until the disk was full, want %d at least: %v\n%s", cycle, names, room, err, d.log)
		}
		t.Logf("cycle %d: %d names until the disk was full", cycle, names)
		room = names / 2
		d.check("check")
		d.do("", "rm", "-rf", "names")
		d.awaitRoom()
		d = d.verify()
	}
}

// nameFiller makes nodes without bytes until the disk is full, and says how many.
var nameFiller = worker("fill-names", func([]string) error {
	for n := 0; ; n++ {
		err := makeNameless(n)
		if errors.Is(err, unix.ENOSPC) {
			fmt.Println(n)
			return nil
		}
		if err != nil {
			return fmt.Errorf("node %d: %w", n, err)
		}
	}
})

// makeNameless makes the nth of many nodes, all of kinds that have no bytes.
func makeNameless(n int) error {
	noise := make([]byte, 3000)
	fill(noise, uint64(n), 0)
	name := func(n int) string { return fmt.Sprintf("names/%d/%0120d", n/1000, n) }
	if n%1000 == 0 {
		if err := os.MkdirAll(filepath.Dir(name(n)), 0o755); err != nil {
			return err
		}
	}
	switch n % 5 {
	case 0:
		return os.Mkdir(name(n), 0o755)
	case 1:
		return os.Symlink(fmt.Sprintf("%x", noise[:1500]), name(n))
	case 2:
		return unix.Mknod(name(n), unix.S_IFIFO|0o600, 0)
	case 3:
		return os.Link(name(n-1), name(n))
	}
	fd, err := unix.Open(name(n), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsetxattr(fd, "user.noise", noise, 0), unix.Close(fd))
}
