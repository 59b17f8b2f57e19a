package casstore

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestTableMaps: Badger's tables can be found, their memory is let go of, and everything is there after it.
func TestTableMaps(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return fmt.Sprint("a name of some length, so that there is much to map ", i) }
	const n = 6_000
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	for i := range n {
		if _, err := w.Create(bg, vfs.RootIno, name(i), vfs.NewNode{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // Badger writes what it has in memory to a table
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	w = openWorkspace(t, s, "ws")
	lookUpAll := func() {
		for i := range n {
			if _, err := w.Lookup(bg, vfs.RootIno, name(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	lookUpAll()
	tables := 0
	for _, l := range s.maps.levels {
		for _, table := range l.hold() {
			tables++
			if err := table.DecrRef(); err != nil {
				t.Error(err)
			}
		}
	}
	if tables == 0 {
		t.Fatal("this Badger has no tables of that name")
	}
	before := inMemory(t, dir)
	s.maps.trimAnyway()
	s.maps.committed()
	for end := time.Now().Add(time.Minute); s.maps.nextTrim() == 0; {
		if time.Now().After(end) {
			t.Fatal("nobody has looked at the memory")
		}
		time.Sleep(mappedPoll)
	}
	if after := inMemory(t, dir); after >= before {
		t.Errorf("%d KiB of the tables were in memory, and are %d", before, after)
	}
	if next := s.maps.nextTrim(); next < mappedMost {
		t.Errorf("the next trim is at %d bytes", next)
	}
	w.forgetAll()
	lookUpAll()
}

// inMemory is how much of the files in a directory this process has mapped and in memory, in KiB (proc_pid_smaps(5)). What
// mappedBytes reads is of the whole process, and the kernel's counter is some hundreds of them wrong.
func inMemory(t *testing.T, dir string) (kib int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(smaps)) {
		switch fields := strings.Fields(line); {
		case !strings.HasSuffix(fields[0], ":"): // a mapping's first line
			ours = strings.Contains(line, dir+"/")
		case ours && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kib += n
		}
	}
	return kib
}

// TestTableMapsOfClosed: a trim that comes late finds nothing.
func TestTableMapsOfClosed(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.maps.trimAnyway()
	s.maps.trim()
}

// trimAnyway has the next trim take the tables out of memory however little they are.
func (m *tableMaps) trimAnyway() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit, m.trimmed = 0, time.Now().Add(time.Hour)
}

func (m *tableMaps) nextTrim() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit
}
