package fuzz

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// churnLive is the part of what TestChurn writes that is there at any time, as a divisor.
	churnLive = 20

	// storeItself is what a store takes on the disk however little is in it: Badger's logs, and what a pack has set aside.
	storeItself = 64 << 20

	// churnSlack is what it may take besides in dead bytes for which no collection was worth it yet.
	churnSlack = 192 << 20

	// fullChurn is what must have been written for the times to count: less is written on machines that are busy.
	fullChurn = 20 << 30
	maxPause  = 200 * time.Millisecond

	// maxChurnMemory bounds what the daemon takes at its most, whatever is written and removed.
	maxChurnMemory = memoryLimit + 50<<20
)

// TestChurn writes and removes files, of a few bytes and of megabytes, until twenty times as much has been written as is there
// at any time. The store must not grow beyond two and a half times that, and have little more than it needs after a collection;
// the files that are left are whole. How long others wait meanwhile is measured. Twenty gigabytes take minutes, so that many are
// written only when CARREL_CHURN_MIB says so. If CARREL_HISTORY is a duration, that much history is kept, and may take what was
// written in it, besides.
func TestChurn(t *testing.T) {
	written := int64(number(t, "CARREL_CHURN_MIB", 640)) << 20
	live := written / churnLive
	d := serve(t, tempDir(t), tempDir(t))
	probe := d.start("", prober, "stop")
	start := time.Now()
	writer := d.start("", fileChurner, "churned", fmt.Sprint(written), fmt.Sprint(live))
	most := d.mostUse(writer.done)
	writer.finish()
	took := time.Since(start)
	d.check("gc")
	least := diskUse(t, d.store)
	d.run("", toucher, "stop")
	memory := d.memory("VmHWM")
	t.Logf("%d MiB written in %v, %d live: at most %d MiB on the disk, %d after a collection; VmHWM %d MiB", written>>20,
		took.Round(time.Millisecond), live>>20, most>>20, least>>20, memory>>20)
	pauses := times(t, probe.finish())
	t.Logf("lookups, writes, reads and removals beside it: %s", pauses)
	if written >= fullChurn && pauses.max > maxPause {
		t.Errorf("one took %v", pauses.max)
	}
	history := writtenInHistory(t, written, took)
	if most > live*5/2+storeItself+churnSlack+history {
		t.Errorf("the store took %d bytes for %d, and %d of history", most, live, history)
	}
	if least > live*13/10+storeItself+history {
		t.Errorf("the store takes %d bytes for %d, and %d of history, after a collection", least, live, history)
	}
	if memory > maxChurnMemory {
		t.Errorf("the daemon took %d MiB", memory>>20)
	}
	d.run("churned", fillVerifier)
	d = d.verify()
	d.run("churned", fillVerifier)
}

// writtenInHistory is how much of so many bytes that were written in a time is in the history: at twice the pace of all that time,
// and with two seconds until the history begins anew and something is collected.
func writtenInHistory(t *testing.T, written int64, took time.Duration) int64 {
	t.Helper()
	span := os.Getenv(historyEnv)
	if span == "" {
		return 0
	}
	d, err := time.ParseDuration(span)
	if err != nil {
		t.Fatal(err)
	}
	return min(written, int64(float64(written)*2*float64(d+2*time.Second)/float64(took)))
}

// mostUse watches what the store takes on the disk until done is closed, and returns the most that it was.
func (d *daemon) mostUse(done <-chan struct{}) (most int64) {
	d.t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		most = max(most, diskUse(d.t, d.store))
		select {
		case <-done:
			tick.Stop()
			return most
		case <-tick.C:
		}
	}
}

// diskUse is what the files under a directory take on the disk. Some may go meanwhile.
func diskUse(t testing.TB, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if os.IsNotExist(err) {
			return nil
		}
		n += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fileChurner makes a directory and writes so many bytes of files into it, whose names say what is in them. So that there are never
// more than it may have, it removes others, which it chooses by chance.
var fileChurner = worker("churn-files", func(args []string) error {
	written, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	live, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	c := churning{dir: args[0], rand: rand.New(rand.NewPCG(1, 2)), largest: int64(live / 16)}
	for c.total < written {
		size := c.size()
		for c.live+size > live {
			if err := c.remove(); err != nil {
				return err
			}
		}
		if err := c.write(size); err != nil {
			return err
		}
	}
	return nil
})

// churning is the files of a fileChurner.
type churning struct {
	dir     string
	rand    *rand.Rand
	largest int64
	files   []churned
	live    uint64
	total   uint64
}

type churned struct {
	path string
	size uint64
}

// size is that of the next file: half are at most 4 KiB, and of those that are larger each doubling is as frequent as any, so
// that most bytes are in large ones.
func (c *churning) size() uint64 {
	most := int64(4 << 10)
	if c.rand.IntN(2) > 0 {
		for most < 16<<20 && most < c.largest && c.rand.IntN(8) > 0 {
			most *= 2
		}
	}
	return 1 + uint64(c.rand.Int64N(most))
}

func (c *churning) write(size uint64) error {
	stamp := c.rand.Uint64()
	path := filepath.Join(c.dir, fmt.Sprintf("%d-%d.synced", size, stamp))
	b := make([]byte, size)
	fill(b, stamp, 0)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return err
	}
	c.files = append(c.files, churned{path, size})
	c.live += size
	c.total += size
	return c.syncSome(size)
}

// syncSome has everything be durable for each quarter of the live bytes that is written, so that little is removed before it was
// stored.
func (c *churning) syncSome(size uint64) error {
	step := max(1, uint64(c.largest)*4)
	if c.total/step == (c.total-size)/step {
		return nil
	}
	fd, err := unix.Open(c.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

func (c *churning) remove() error {
	i, last := c.rand.IntN(len(c.files)), len(c.files)-1
	f := c.files[i]
	c.files[i] = c.files[last]
	c.files = c.files[:last]
	c.live -= f.size
	return os.Remove(f.path)
}

// prober does a little of everything every few milliseconds until a name appears, and says how long each operation took.
var prober = worker("probe", func(args []string) error {
	start := time.Now()
	took := func() {
		now := time.Now()
		fmt.Println(now.Sub(start))
		start = now
	}
	for i := 0; ; i++ {
		time.Sleep(3 * time.Millisecond)
		start = time.Now()
		if _, err := os.Lstat(args[0]); err == nil {
			return nil
		}
		took()
		name := fmt.Sprintf("probe-%d", i%2)
		if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
			return err
		}
		took()
		if got, err := os.ReadFile(name); err != nil || string(got) != name {
			return fmt.Errorf("%s has %q: %w", name, got, err)
		}
		took()
		if err := os.Remove(name); err != nil {
			return err
		}
		took()
	}
})
