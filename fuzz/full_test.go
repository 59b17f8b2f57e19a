package fuzz

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	smallDisk = 256 << 20 // bytes of a disk that is filled
	tinyDisk  = 128 << 20 // and of one that is filled little by little

	// roomPatience is how long a full disk may stay full after files have been removed, on a machine that is busy.
	roomPatience = 30 * time.Second

	// leastFill is what must fit on the disk at least, in bytes: the rest is the reserve and what the store itself needs.
	leastFill = 100 << 20
)

// smallStore returns a directory for a store on a disk of its own of so many bytes, and that disk.
func smallStore(t testing.TB, size int) (store, disk string) {
	t.Helper()
	disk = tempDir(t)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatalf("mount a tmpfs, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Errorf("unmount %s: %v", disk, errors.Join(err, unix.Unmount(disk, unix.MNT_DETACH)))
		}
	})
	return filepath.Join(disk, "store"), disk
}

// TestFullDisk fills a small disk by several writers, removes all, half or little of what they wrote, and fills it again.
// The writers get ENOSPC and nothing else; what they had synced is whole, before and after the disk has room again.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove int // of so many files one is removed
	}{{"all", 1}, {"half", 2}, {"little", 16}} {
		t.Run(c.name, func(t *testing.T) {
			store, _ := smallStore(t, smallDisk)
			d := serve(t, store, tempDir(t))
			room := uint64(leastFill)
			for cycle := range 3 {
				d.fill(cycle, room)
				d.run("", fillVerifier)
				d.check("check")
				room = d.remove(c.remove) / 2 // what others share, and what packs waste, makes no room
				d.awaitRoom()
				d.run("", fillVerifier)
			}
			room = d.remove(c.remove) / 2
			d = d.verify() // which opens the store anew: what is garbage in it must be found out
			d.run("", fillVerifier)
			d.fill(3, room)
			d = d.verify()
			d.run("", fillVerifier)
		})
	}
}

// fill has several writers fill the disk, which must have room for so many bytes.
func (d *daemon) fill(cycle int, room uint64) {
	d.t.Helper()
	var writers []*child
	for i := range 3 {
		writers = append(writers, d.start("", filler, fmt.Sprintf("w%d-%d", cycle, i)))
	}
	var total uint64
	for _, w := range writers {
		var n uint64
		if _, err := fmt.Sscan(w.finish(), &n); err != nil {
			d.t.Fatal(err)
		}
		total += n
	}
	d.t.Logf("cycle %d: %d MiB written until the disk was full", cycle, total>>20)
	if total < room {
		d.t.Errorf("cycle %d: only %d bytes found room, less than %d", cycle, total, room)
	}
}

// remove removes one of so many files, and returns how many bytes they had.
func (d *daemon) remove(each int) (total uint64) {
	d.t.Helper()
	if _, err := fmt.Sscan(d.run("", remover, strconv.Itoa(each)), &total); err != nil {
		d.t.Fatal(err)
	}
	return total
}

// awaitRoom waits until a megabyte can be written, which must be soon.
func (d *daemon) awaitRoom() {
	d.t.Helper()
	took, err := time.ParseDuration(strings.TrimSpace(d.run("", roomFinder)))
	if err != nil {
		d.t.Fatal(err)
	}
	if took > roomPatience {
		d.t.Errorf("the disk stayed full for %v after files were removed", took)
	}
	d.t.Logf("there was room after %v", took.Round(time.Millisecond))
}

// filler writes files until the disk is full, and says how many bytes that were. Each file begins with its size and is
// named by whether it has been synced.
var filler = worker("fill", func(args []string) error {
	if err := os.Mkdir(args[0], 0o755); err != nil && !errors.Is(err, unix.ENOSPC) {
		return err
	} else if err != nil {
		fmt.Println(0)
		return nil
	}
	var total uint64
	for i := 0; ; i++ {
		size := uint64(1+i%7) << 17
		err := fillFile(args[0], i, size)
		if errors.Is(err, unix.ENOSPC) {
			fmt.Println(total)
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", total, err)
		}
		total += size
	}
})

// fillFile writes "DIR/SIZE-STAMP", has it synced and renames it to "DIR/SIZE-STAMP.synced".
func fillFile(dir string, i int, size uint64) error {
	stamp := mix(uint64(os.Getpid())<<32 ^ uint64(i))
	path := fmt.Sprintf("%s/%d-%d", dir, size, stamp)
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	b := make([]byte, size)
	fill(b, stamp, 0)
	for off := int64(0); off < int64(size) && err == nil; {
		var n int
		if n, err = unix.Pwrite(fd, b[off:], off); err != nil {
			err = fmt.Errorf("write: %w", err)
		}
		off += int64(n)
	}
	if err == nil {
		if err = unix.Fsync(fd); err != nil {
			err = fmt.Errorf("fsync: %w", err)
		}
	}
	err = errors.Join(err, unix.Close(fd))
	if err == nil {
		if err = os.Rename(path, path+".synced"); err != nil {
			err = fmt.Errorf("rename: %w", err)
		}
	}
	return err
}

// fillVerifier reads all that fillers have written; what is synced must be whole.
var fillVerifier = worker("fill-verify", func([]string) error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, synced := strings.CutSuffix(d.Name(), ".synced")
		var size, stamp uint64
		if _, err := fmt.Sscanf(name, "%d-%d", &size, &stamp); err != nil || !synced {
			return nil
		}
		want := make([]byte, size)
		fill(want, stamp, 0)
		if string(got) != string(want) {
			return fmt.Errorf("%s: synced, but not what was written: %d bytes", path, len(got))
		}
		return nil
	})
})

// remover removes files, one of so many, and says how many bytes they had.
var remover = worker("remove", func(args []string) error {
	each, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	nth, total := 0, int64(0)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if nth++; nth%each > 0 {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return os.Remove(path)
	})
	fmt.Println(total)
	return err
})

// roomFinder says how long it takes until a megabyte can be written and synced.
var roomFinder = worker("find-room", func([]string) error {
	start := time.Now()
	for i := 0; ; i++ {
		name := fmt.Sprintf("room-%d", i)
		err := os.Mkdir(name, 0o755)
		if err == nil {
			err = fillFile(name, i, 1<<20)
		}
		if err == nil {
			fmt.Println(time.Since(start))
			return os.RemoveAll(name)
		}
		if !errors.Is(err, unix.ENOSPC) || time.Since(start) > time.Minute {
			return fmt.Errorf("after %v: %w", time.Since(start), err)
		}
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
})

// TestOverwriting writes a small disk full several times over without ever holding more than a megabyte: what has been
// replaced must make room by itself.
func TestOverwriting(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, times int
	}{{"in line", 4000, 50_000}, {"in chunks", 1 << 20, 300}} {
		t.Run(c.name, func(t *testing.T) {
			store, _ := smallStore(t, tinyDisk)
			d := serve(t, store, tempDir(t))
			d.run("", overwriter, strconv.Itoa(c.size), strconv.Itoa(c.times))
			d.run("", fillVerifier)
			d.verify()
		})
	}
}

// overwriter replaces the bytes of a file over and over, and has it synced each time.
var overwriter = worker("overwrite", func(args []string) error {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	fd, err := unix.Open(fmt.Sprintf("%d-%d.synced", size, times-1), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	b := make([]byte, size)
	for i := range times {
		fill(b, uint64(i), 0)
		n, err := unix.Pwrite(fd, b, 0)
		if err == nil && n == len(b) {
			err = unix.Fsync(fd)
		}
		if err != nil || n < len(b) {
			return fmt.Errorf("time %d, %d bytes: %w", i, n, err)
		}
	}
	return unix.Close(fd)
})

// TestDiskFilledByOthers fills the disk by a file that is not the store's, to the last byte, while the store is at work.
func TestDiskFilledByOthers(t *testing.T) {
	store, disk := smallStore(t, smallDisk)
	d := serve(t, store, tempDir(t))
	d.run("", fillSome, "first")
	ballast := filepath.Join(disk, "ballast")
	fillUp(t, ballast)
	if got := d.run("", errnoTeller, "second"); strings.TrimSpace(got) != "ENOSPC" {
		t.Errorf("a writer on a full disk gets %q", got)
	}
	d.run("", fillVerifier)
	d.check("check")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	d.awaitRoom()
	d.run("", fillVerifier)
	d = d.verify()
	d.run("", fillVerifier)

	fillUp(t, ballast)
	d.remove(1) // works in memory however full the disk is
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	d = d.verify()
	d.fill(1, leastFill)
	d.verify()
}

// fillUp makes a file that takes all of a disk.
func fillUp(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(b)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// fillSome writes some files.
var fillSome = worker("fill-some", func(args []string) error {
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	for i := range 50 {
		if err := fillFile(args[0], i, 256<<10); err != nil {
			return err
		}
	}
	return nil
})

// errnoTeller writes files until an error comes, and says which.
var errnoTeller = worker("tell-errno", func(args []string) error {
	err := os.Mkdir(args[0], 0o755)
	for i := 0; err == nil; i++ {
		err = fillFile(args[0], i, 64<<10)
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return err
	}
	fmt.Println(unix.ErrnoName(errno))
	return nil
})
