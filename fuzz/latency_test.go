package fuzz

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// maxMedianFsync is how long an fsync of a small file may take in the median, whatever else is being written; or else the
// copyShare-th part of what a large copy beside it takes, when the machine or its disk is slow. One that waits for the bytes
// of the copy takes a large part of it.
const (
	maxMedianFsync = 200 * time.Millisecond
	copyShare      = 20
)

// TestFsyncBesideCopy measures fsync of a small file, alone and while a large file is being copied beside it.
func TestFsyncBesideCopy(t *testing.T) {
	size := int64(number(t, "CARREL_COPY_MIB", 512)) << 20
	source := filepath.Join(tempDir(t), "source")
	d := serve(t, tempDir(t), tempDir(t))
	d.run("", noiseWriter, source, fmt.Sprint(size))

	alone := d.run("", fsyncTimer, "50", "")
	t.Logf("fsync alone: %s", times(t, alone))

	start := time.Now()
	cp := d.startProgram("", nil, "cp", source, "copy")
	timer := d.start("", fsyncTimer, "1000000", "stop")
	cp.finish()
	took := time.Since(start)
	d.run("", toucher, "stop")
	beside := times(t, timer.finish())
	t.Logf("fsync beside a copy of %d MiB, which took %v: %s", size>>20, took.Round(time.Millisecond), beside)
	if beside.count < 5 {
		t.Errorf("only %d fsyncs during the copy", beside.count)
	}
	if most := max(maxMedianFsync, took/copyShare); beside.median > most {
		t.Errorf("an fsync takes %v, more than %v", beside.median, most)
	}
	d.do("", "cmp", source, "copy")
	d.verify()
}

// noiseWriter makes a file, which need not be in the mount, of so many bytes that cannot be compressed.
var noiseWriter = worker("noise", func(args []string) error {
	size, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for off := int64(0); off < size && err == nil; off += int64(len(b)) {
		fill(b, uint64(size), uint64(off))
		_, err = f.Write(b[:min(int64(len(b)), size-off)])
	}
	return errors.Join(err, f.Close())
})

// fsyncTimer appends to a small file and has it synced, up to a number of times or until a name appears, and says how
// long each fsync took.
var fsyncTimer = worker("fsync-timer", func(args []string) error {
	var most int
	if _, err := fmt.Sscan(args[0], &most); err != nil {
		return err
	}
	fd, err := unix.Open("small", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	for range most {
		if args[1] != "" && unix.Stat(args[1], &st) == nil {
			break
		}
		if _, err := unix.Write(fd, make([]byte, 500)); err != nil {
			return err
		}
		start := time.Now()
		if err := unix.Fsync(fd); err != nil {
			return err
		}
		fmt.Println(time.Since(start))
	}
	return unix.Close(fd)
})

// toucher makes an empty file.
var toucher = worker("touch", func(args []string) error {
	fd, err := unix.Open(args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	return errors.Join(err, unix.Close(fd))
})

// durations sums up how long something took.
type durations struct {
	count            int
	median, p95, max time.Duration
}

func (d durations) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
	return fmt.Sprintf("%d times, p50 %s, p95 %s, max %s", d.count, ms(d.median), ms(d.p95), ms(d.max))
}

// times sums up what a worker has said, a duration in each line.
func times(t testing.TB, lines string) durations {
	t.Helper()
	var all []time.Duration
	for line := range strings.Lines(lines) {
		d, err := time.ParseDuration(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		t.Fatal("nothing was measured")
	}
	slices.Sort(all)
	return durations{len(all), all[len(all)/2], all[len(all)*95/100], all[len(all)-1]}
}
