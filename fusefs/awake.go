package fusefs

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// awake keeps idle CPUs from sleeping while requests come fast.
//
// For each request the kernel wakes the reader, and for each answer the process that waits. The scheduler likes to take
// another CPU for that, which is idle at this moment. In a virtual machine an idle CPU has been given back to the host,
// and to have it again takes longer than all the rest: here a LOOKUP takes 10 µs, or 43 when both wakings are of that
// kind. So while there are many requests, we ask for a wake-up latency of zero (PM QoS, /dev/cpu_dma_latency), and idle
// CPUs spin, for the host's account; when it becomes quiet they sleep again. On a CPU of its own the kernel chooses
// light sleep by itself in such times, and little would be gained: nothing is done there, nor on large machines, nor
// for who is not root.
//
// Tried in its place: to move the reader to the CPU of its client, which the scheduler soon leaves; to spin in the
// reader, which saves one of the two wakings, and makes both of them certain.
//
// A nil *awake does nothing.
type awake struct {
	set      func(latency int32) // for the whole machine, in microseconds
	requests *atomic.Uint64
	on       atomic.Bool
	last     time.Time // when a burst of requests had come; the token holder's
	stop     chan struct{}
	wg       sync.WaitGroup
	release  func()
}

// anyLatency takes the request back.
const anyLatency = math.MaxInt32

// newAwake returns nil where nothing is to be gained or allowed.
func newAwake(requests *atomic.Uint64) *awake {
	if !sleepsDeeply("/sys/devices/system/cpu") {
		return nil
	}
	fd, err := unix.Open("/dev/cpu_dma_latency", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	set := func(latency int32) {
		_, _ = unix.Write(fd, binary.NativeEndian.AppendUint32(nil, uint32(latency)))
	}
	return &awake{
		set: set, requests: requests, stop: make(chan struct{}), release: func() { _ = unix.Close(fd) },
	}
}

// sleepsDeeply reports whether this is a small virtual machine. haltpoll is the kernel's driver for idle CPUs in these.
func sleepsDeeply(cpus string) bool {
	driver, err := os.ReadFile(filepath.Join(cpus, "cpuidle/current_driver"))
	if err != nil || strings.TrimSpace(string(driver)) != "haltpoll" {
		return false
	}
	all, err := filepath.Glob(filepath.Join(cpus, "cpu[0-9]*"))
	return err == nil && len(all) <= maxAwake
}

// request is called by the token holder for each request, with its number.
func (a *awake) request(n uint64) {
	if a == nil || n%burst != 0 {
		return
	}
	now := time.Now()
	fast := now.Sub(a.last) < burstTime
	a.last = now
	if fast && !a.on.Load() {
		a.on.Store(true)
		a.set(0)
		a.wg.Add(1)
		go a.watch()
	}
}

// watch waits until it is quiet.
func (a *awake) watch() {
	defer a.wg.Done()
	defer a.on.Store(false)
	defer a.set(anyLatency)
	tick := time.NewTicker(lull)
	defer tick.Stop()
	for before := a.requests.Load(); ; {
		select {
		case <-a.stop:
			return
		case <-tick.C:
		}
		now := a.requests.Load()
		if now-before < burst {
			return
		}
		before = now
	}
}

// close is called when there are no more requests.
func (a *awake) close() {
	if a == nil {
		return
	}
	close(a.stop)
	a.wg.Wait()
	a.release()
}
