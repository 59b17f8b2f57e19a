package fusefs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// machine notes what latency it was asked for.
type machine struct {
	mu        sync.Mutex
	latencies []int32
	requests  atomic.Uint64
	awake     *awake
}

func newMachine() *machine {
	m := new(machine)
	m.awake = &awake{
		set: func(latency int32) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.latencies = append(m.latencies, latency)
		},
		requests: &m.requests, stop: make(chan struct{}), release: func() {},
	}
	return m
}

// work makes n requests, one every pause.
func (m *machine) work(n int, pause time.Duration) {
	for range n {
		time.Sleep(pause)
		m.awake.request(m.requests.Add(1))
	}
}

func (m *machine) expect(t *testing.T, when string, want ...int32) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.latencies, want) {
		t.Errorf("%s: latencies %v were asked for, want %v", when, m.latencies, want)
	}
}

func TestAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.work(10*burst, time.Millisecond)
		m.expect(t, "a request each millisecond")
		m.work(3*burst, 10*time.Microsecond)
		m.expect(t, "many", 0)
		m.work(100*burst, 100*time.Microsecond)
		m.expect(t, "many more", 0)
		time.Sleep(2*lull + time.Millisecond)
		m.expect(t, "a lull", 0, anyLatency)
		m.work(3*burst, 10*time.Microsecond)
		m.expect(t, "many again", 0, anyLatency, 0)
		m.awake.close()
		m.expect(t, "the end", 0, anyLatency, 0, anyLatency)
	})
}

func TestSleepsDeeply(t *testing.T) {
	for _, c := range []struct {
		driver string
		cpus   int
		want   bool
	}{
		{"haltpoll\n", 2, true}, {"haltpoll\n", maxAwake, true}, {"haltpoll\n", maxAwake + 1, false},
		{"intel_idle\n", 2, false}, {"", 2, false},
	} {
		dir := t.TempDir()
		make := func(name string) {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		make("cpuidle")
		for i := range c.cpus {
			make("cpu" + strconv.Itoa(i))
		}
		if c.driver != "" {
			if err := os.WriteFile(filepath.Join(dir, "cpuidle/current_driver"), []byte(c.driver), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := sleepsDeeply(dir); got != c.want {
			t.Errorf("driver %q and %d CPUs: %v", c.driver, c.cpus, got)
		}
	}
}
