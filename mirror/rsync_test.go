package mirror

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// At full size:
//
//	go test ./mirror -run TestPushBesideRsync -v -tree 50000 -push 8000 -rounds 5
var (
	sizeTree   = flag.Int("tree", 200, "how many files are there before TestPushBesideRsync makes more")
	sizePush   = flag.Int("push", 80, "how many it makes at the most")
	sizeRounds = flag.Int("rounds", 1, "how often it makes as many; the shortest time of each side counts")
)

// New small files are pushed in a number of requests that does not depend on what is there, and hardly on how many they are. How
// long it takes stands in the log, beside what rsync -a takes over loopback, for as many files of the same tree: the times of both are
// from the first file that is made to the last that is there.
func TestPushBesideRsync(t *testing.T) {
	l := newLab(t, 0)
	tree := on(t, l.ws)
	r := newRsync(t)
	for i := range *sizeTree {
		if i%100 == 0 {
			tree.mkdir(fmt.Sprint("/t", i/100))
			r.mkdir(fmt.Sprint("t", i/100))
		}
		name := fmt.Sprintf("t%d/%d", i/100, i)
		tree.write("/"+name, "a file of before")
		r.write(name, "a file of before")
	}
	l.commit()
	n := l.join()
	if err := n.AwaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.sync()
	r.sync()
	for i, count := range []int{min(10, *sizePush/8), *sizePush / 8, *sizePush / 4, *sizePush / 2, *sizePush} {
		ours, theirs, requests := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), uint64(0)
		for round := range *sizeRounds {
			before := n.client.Stats().Requests
			took := n.pushFiles(fmt.Sprintf("/new%d-%d", i, round), count)
			requests = n.client.Stats().Requests - before
			// What is committed while the files are still being made is pushed by itself.
			if most := 20 + uint64(count/20) + uint64(took/(5*time.Millisecond)); requests > most {
				t.Errorf("%d files in %d requests", count, requests)
			}
			ours, theirs = min(ours, took), min(theirs, r.pushFiles(fmt.Sprintf("new%d-%d", i, round), count))
		}
		t.Logf("%5d new files beside %d: %v, %v a file, in %d requests; rsync %v, %.1f times as long", count, *sizeTree,
			ours.Round(time.Millisecond/10), (ours / time.Duration(count)).Round(time.Microsecond), requests,
			theirs.Round(time.Millisecond/10), theirs.Seconds()/ours.Seconds())
	}
	n.sync()
	l.settle()
}

// pushFiles makes small files in a new directory, and returns how long that took until the authority has them.
func (n *node) pushFiles(dir string, count int) time.Duration {
	n.lab.t.Helper()
	f := on(n.lab.t, n.Tree())
	began := time.Now()
	f.mkdir(dir)
	ino := f.ino(dir)
	for i := range count {
		a, err := f.tree.Create(context.Background(), ino, fmt.Sprint(i), vfs.NewNode{Mode: 0o644})
		if err == nil {
			err = f.tree.WriteAt(context.Background(), a.Ino, fmt.Appendf(nil, "new file %d", i), 0, false)
		}
		f.must("make a file", err)
	}
	f.must("push", n.Push(context.Background()))
	return time.Since(began)
}

// rsync is a directory and a daemon that has a copy of it.
type rsync struct {
	t        testing.TB
	from, to string
	url      string
}

func newRsync(t testing.TB) *rsync {
	t.Helper()
	dir := t.TempDir()
	r := &rsync{t: t, from: filepath.Join(dir, "from"), to: filepath.Join(dir, "to")}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // for a port that is free
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()
	r.url = "rsync://127.0.0.1:" + port + "/to/"
	config := filepath.Join(dir, "config")
	text := fmt.Sprintf("use chroot = no\nuid = %d\ngid = %d\n[to]\npath = %s\nread only = no\n", os.Getuid(), os.Getgid(), r.to)
	for _, d := range []string{r.from, r.to} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("rsync", "--daemon", "--no-detach", "--address=127.0.0.1", "--port="+port, "--config="+config,
		"--log-file="+filepath.Join(dir, "log"))
	if err := daemon.Start(); err != nil {
		t.Fatalf("rsync is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
			return r
		}
		if time.Since(began) > patience {
			t.Fatal(err)
		}
	}
}

func (r *rsync) mkdir(name string) {
	r.t.Helper()
	if err := os.Mkdir(filepath.Join(r.from, name), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rsync) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.from, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// sync has the daemon have what is in the directory.
func (r *rsync) sync() {
	r.t.Helper()
	if out, err := exec.Command("rsync", "-a", r.from+"/", r.url).CombinedOutput(); err != nil {
		r.t.Fatalf("rsync: %v\n%s", err, out)
	}
}

// pushFiles is as that of a node.
func (r *rsync) pushFiles(dir string, count int) time.Duration {
	r.t.Helper()
	began := time.Now()
	r.mkdir(dir)
	for i := range count {
		r.write(fmt.Sprintf("%s/%d", dir, i), fmt.Sprint("new file ", i))
	}
	r.sync()
	took := time.Since(began)
	if list, err := os.ReadDir(filepath.Join(r.to, dir)); err != nil || len(list) != count {
		r.t.Fatalf("rsync has brought %d files of %d, %v", len(list), count, err)
	}
	return took
}
