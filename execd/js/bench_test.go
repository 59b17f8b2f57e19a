package js

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
)

// nowhere takes what is written.
type nowhere struct{}

func (nowhere) Write(execd.Stream, []byte) {}

// still is a workspace in which nothing changes.
type still struct{ tree vfs.Tree }

func (w still) Tree() vfs.Tree                          { return w.tree }
func (w still) Before(context.Context) (vfs.Rev, error) { return 1, nil }
func (w still) After(context.Context) (vfs.Rev, error)  { return 1, nil }
func (still) Settle(context.Context)                    {}
func (w still) Close() error                            { return nil }
func (w still) Changes(context.Context, vfs.Rev, vfs.Rev) (execd.Changes, error) {
	return execd.Changes{}, nil
}

// newClient is a client of a daemon that runs modules alone.
func newClient(b *testing.B, k *Backend) *api.Client {
	open := func(context.Context, string) (execd.Workspace, error) { return still{vfstest.NewTree()}, nil }
	execs, err := execd.Open(execd.Config{
		Dir: filepath.Join(b.TempDir(), "exec"), Backends: map[string]execd.Backend{"js": k}, Default: "js", Open: open,
	})
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	api.Register(mux.Handle, api.Config{Execs: execs, Open: open})
	server := httptest.NewServer(mux)
	client := api.NewClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	b.Cleanup(func() {
		client.Close()
		if err := execs.Close(); err != nil {
			b.Error(err)
		}
		server.Close()
	})
	return client
}

// From start to exit of a module that gives a value: medians of rounds in which everything takes its turn, in microseconds.
// Warm is one that finds a worker waiting, cold one that does not, and api one that finds one waiting and is started
// through the API, from the call to the end of its events.
//
//	go test ./execd/js -run '^$' -bench Start -benchtime 200x
func BenchmarkStart(b *testing.B) {
	warm, cold := New(), New()
	defer warm.Close()
	defer cold.Close()
	cold.pool.close() // and has none from here on
	tree := vfstest.NewTree()
	took := map[string][]time.Duration{}
	turn := func(name string, f func()) {
		start := time.Now()
		f()
		took[name] = append(took[name], time.Since(start))
	}
	module := func(k *Backend) {
		job := execd.Job{Spec: execd.Spec{Source: "export default 1", Dir: "/"}, Tree: tree}
		p, err := k.Start(context.Background(), job, nowhere{})
		if err != nil {
			b.Fatal(err)
		}
		if x := p.Wait(); string(x.Value) != "1" {
			b.Fatal(x)
		}
	}
	client := newClient(b, warm)
	for b.Loop() {
		turn("fork+exec", func() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		})
		turn("cold", func() { module(cold) })
		warm.awaitPool()
		turn("warm", func() { module(warm) })
		warm.awaitPool()
		turn("api", func() {
			events, err := client.Start(context.Background(), execd.Spec{Workspace: "ws", Source: "export default 1"})
			if err != nil {
				b.Fatal(err)
			}
			for err == nil {
				_, err = events.Next()
			}
			events.Close()
			if !errors.Is(err, io.EOF) {
				b.Fatal(err)
			}
		})
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-µs")
	}
}

// awaitPool waits until the pool is full.
func (b *Backend) awaitPool() {
	for {
		b.pool.mu.Lock()
		full := len(b.pool.ready) == poolSize
		b.pool.mu.Unlock()
		if full {
			return
		}
		time.Sleep(time.Millisecond) // other processes work on it
	}
}
