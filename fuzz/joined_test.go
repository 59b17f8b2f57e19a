package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/fusefs"
	"github.com/carrelfs/carrel/mirror"
	"github.com/carrelfs/carrel/syncwire"
)

// runAuthority is the main function of an authority: it serves a store on a socket.
func runAuthority(store, socket string) error {
	log, stop := daemonProcess()
	s, w, err := openStore(store, log)
	if err != nil {
		return err
	}
	l, err := syncwire.ListenUnix(socket)
	if err != nil {
		return errors.Join(err, w.Close(), s.Close())
	}
	authority := w.Authority()
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return authority, nil },
		Verifier: anybody{},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	listen(stop, func(line string) string { return obey(s, w, line) })
	return errors.Join(server.Close(), <-served, w.Close(), s.Close())
}

// runMirror is the main function of a mirror, which mounts what it joins on dir.
func runMirror(state, dir, socket string) error {
	log, stop := daemonProcess()
	id, err := mirror.Identity(state)
	if err != nil {
		return err
	}
	link := &cuttable{Dialer: syncwire.DialUnix(socket)}
	client := syncwire.NewClient(syncwire.ClientConfig{
		Dialer: link, Workspace: workspaceName, Mirror: id,
		Token: func(context.Context) ([]byte, error) { return []byte("secret"), nil },
	})
	m, err := mirror.Open(context.Background(), mirror.Config{Dir: state, Peer: client, Log: log})
	if err != nil {
		return errors.Join(err, client.Close())
	}
	srv, err := fusefs.Mount(dir, m.Presented(), fusefs.Options{AllowOther: true, Logger: log})
	if err != nil {
		return errors.Join(err, m.Close(), client.Close())
	}
	listen(stop, func(line string) string { return obeyMirror(m, link, line) })
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience/2)
	defer cancel()
	return errors.Join(srv.Unmount(ctx), m.Close(), client.Close())
}

// obeyMirror does what a test asks of a mirror.
func obeyMirror(m *mirror.Mirror, link *cuttable, line string) string {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience/2)
	defer cancel()
	var err error
	switch line {
	case "cut", "mend":
		link.set(line == "cut")
	case "now":
		err = m.Now(ctx)
	case "conflicts":
		list, lerr := m.Conflicts()
		if err = lerr; len(list) > 0 {
			err = fmt.Errorf("%+v", list)
		}
	case "audit":
		err = vfstest.Audit(ctx, m.Tree())
	default:
		return "cannot " + line
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// cuttable is a way to an authority that can be cut.
type cuttable struct {
	syncwire.Dialer

	mu    sync.Mutex
	cut   bool
	links []syncwire.Link
}

func (c *cuttable) Dial(ctx context.Context) (syncwire.Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, errors.New("the link is cut")
	}
	l, err := c.Dialer.Dial(ctx)
	if err == nil {
		c.links = append(c.links, l)
	}
	return l, err
}

func (c *cuttable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, l := range c.links {
		l.Close()
	}
	c.links = nil
}

// outages is a workspace that was joined, in which git and SQLite work while all that they rest on fails.
type outages struct {
	t                        *testing.T
	rand                     *rand.Rand
	store, socket, dir, home string // home is outside of the mount
	authority, mirror        *daemon
	most                     int // how long, in milliseconds, nothing happens
	lives                    int // of the mirror
	acked                    int // rows that sqlite has said to be there
}

// TestJoinedOutages kills the mirror, with its disk and without, kills the authority and cuts the link, at random moments while git
// commits and SQLite writes on the mount. After each, git fsck finds nothing, the database is sound, and every row is there whose
// transaction has ended.
func TestJoinedOutages(t *testing.T) {
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	o := &outages{t: t, rand: rand.New(rand.NewPCG(seed, 1)), store: tempDir(t), dir: tempDir(t), home: tempDir(t)}
	o.most = number(t, "CARREL_OUTAGE_MS", 100)
	o.socket = filepath.Join(o.home, "s")
	o.serve()
	o.join()
	o.mirror.startProgram("", gitEnv, "git", "init", "-q", "repo").finish()
	o.sql("PRAGMA journal_mode=WAL; CREATE TABLE t(n INTEGER PRIMARY KEY, body BLOB);")
	kinds := []func(){o.killMirror, o.loseMirror, o.killAuthority, o.cutLink}
	for round := range number(t, "CARREL_OUTAGES", len(kinds)) {
		o.round(round, kinds[round%len(kinds)])
		if t.Failed() {
			t.Fatalf("round %d of VFSTEST_SEED=%d", round, seed)
		}
	}
	o.mirror.check("now")
	o.mirror.check("audit")
	o.mirror.check("conflicts")
	o.authority.check("audit")
	o.authority.check("check")
	before := o.mirror.run("", fingerprinter, ".")
	o.mirror.stop()
	o.forget()
	o.join()
	if after := o.mirror.run("", fingerprinter, "."); after != before {
		t.Errorf("another mirror has another tree:\n%s", differing(before, after))
	}
	t.Logf("%d rows, %s commits", o.acked, strings.TrimSpace(o.git("rev-list", "--count", "--all")))
}

func (o *outages) serve() {
	o.authority = launchAs(o.t, roleAuthority, o.store, o.home, o.socket)
	o.authority.ready()
}

func (o *outages) join() {
	o.mirror = launchAs(o.t, roleMirror, o.state(), o.dir, o.socket)
	o.mirror.ready()
}

// state is the directory of the mirror that is there.
func (o *outages) state() string { return filepath.Join(o.home, fmt.Sprint("mirror", o.lives)) }

// forget has the next mirror be another one, which has nothing.
func (o *outages) forget() {
	if err := os.RemoveAll(o.state()); err != nil {
		o.t.Fatal(err)
	}
	o.lives++
}

func (o *outages) killMirror() { o.mirror.kill() }

func (o *outages) loseMirror() {
	o.mirror.kill()
	o.forget()
}

func (o *outages) killAuthority() {
	o.authority.kill()
	o.pause(o.most)
	o.serve()
}

func (o *outages) cutLink() {
	o.mirror.check("cut")
	o.pause(o.most)
	o.mirror.check("mend")
}

// pause waits for up to some milliseconds.
func (o *outages) pause(most int) { <-time.After(time.Duration(o.rand.IntN(most)) * time.Millisecond) }

// round has git and SQLite work while something happens, and looks at what they have left.
func (o *outages) round(round int, happens func()) {
	o.t.Helper()
	stop := filepath.Join(o.home, "stop")
	if err := os.RemoveAll(stop); err != nil {
		o.t.Fatal(err)
	}
	rows := o.mirror.startProgram("", nil, "sh", "-c", fmt.Sprintf(`n=%d
while [ ! -e %s ]; do
	n=$((n + 1))
	sqlite3 -bail -cmd '.timeout 60000' db "PRAGMA synchronous=FULL; INSERT INTO t VALUES($n, randomblob(500));" || exit 1
	echo $n
done`, o.rows(), stop))
	commits := o.mirror.startProgram("repo", gitEnv, "sh", "-c", fmt.Sprintf(`n=0
while [ ! -e %s ]; do
	n=$((n + 1))
	mkdir -p d$((n %% 7)) && echo "%d $n" >d$((n %% 7))/f$((n %% 40)) && git add -A && git commit -q -m "%[2]d $n" || exit 1
done`, stop, round))
	o.pause(o.most)
	life := o.mirror
	happens()
	if !life.ended {
		o.pause(o.most)
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		o.t.Fatal(err)
	}
	errRows, errCommits := rows.wait(), commits.wait()
	if life.ended {
		o.join()
	} else if errRows != nil || errCommits != nil {
		o.t.Errorf("sqlite: %v, git: %v\n%s%s", errRows, errCommits, tail(rows.errors.String()), tail(commits.errors.String()))
	}
	if said := strings.Fields(rows.out.String()); len(said) > 0 {
		acked, err := strconv.Atoi(said[len(said)-1])
		if err != nil {
			o.t.Fatal(err)
		}
		o.acked = acked
	}
	o.inspect()
}

// inspect looks at everything that must have survived.
func (o *outages) inspect() {
	o.t.Helper()
	if got := o.sql("PRAGMA integrity_check;"); got != "ok" {
		o.t.Errorf("integrity check: %s", got)
	}
	if got := o.sql(fmt.Sprintf("SELECT count(*) FROM t WHERE n <= %d AND length(body) = 500;", o.acked)); got != fmt.Sprint(o.acked) {
		o.t.Errorf("%s rows of %d", got, o.acked)
	}
	// Who was killed has left its locks, as on every file system.
	o.mirror.startProgram("repo", nil, "sh", "-c", "find .git -name '*.lock' -delete").finish()
	o.git("fsck", "--full", "--strict")
	o.git("status", "--porcelain")
}

// rows is the highest number of a row.
func (o *outages) rows() int {
	o.t.Helper()
	n, err := strconv.Atoi(o.sql("SELECT coalesce(max(n), 0) FROM t;"))
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

func (o *outages) sql(text string) string {
	o.t.Helper()
	return strings.TrimSpace(o.mirror.do("", "sqlite3", "-cmd", ".timeout 60000", "db", text))
}

func (o *outages) git(args ...string) string {
	o.t.Helper()
	return o.mirror.startProgram("repo", gitEnv, append([]string{"git"}, args...)...).finish()
}
