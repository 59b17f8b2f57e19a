package bench

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Noise says how quiet the machine was.
type Noise struct {
	// Pace is how long the same computation took before each round, and how much that varied.
	Pace Summary `json:"pace"`
	// Others is the share of the machine's CPU time that went to processes that are not ours, or to other guests of
	// the same host; between 0 and 1.
	Others float64 `json:"others"`
	// Noisy says that the report is not to be trusted, and Why.
	Noisy bool   `json:"noisy"`
	Why   string `json:"why,omitempty"`
}

// pacer tells a quiet machine from a noisy one by doing the same work again and again.
type pacer struct {
	buffer []byte
	times  []float64
	cpu    cpuTimes
}

// cpuTimes are CPU times since some start, in nanoseconds.
type cpuTimes struct {
	at   time.Time
	busy int64 // of the whole machine, stolen time included
	ours int64 // of this process and those that it has waited for
}

func newPacer() *pacer { return &pacer{buffer: make([]byte, 1<<20), cpu: readCPU()} }

// tick does the work once, some milliseconds of it.
func (p *pacer) tick() {
	start := time.Now()
	for range 4 {
		sum := sha256.Sum256(p.buffer)
		copy(p.buffer, sum[:])
	}
	p.times = append(p.times, float64(time.Since(start)))
}

// judge says how quiet it was since the pacer was made. The targets must be closed: their processes count as ours only
// when they have been waited for.
func (p *pacer) judge() (n Noise) {
	if len(p.times) > 0 {
		n.Pace = summarise(p.times)
	}
	now := readCPU()
	if capacity := float64(now.at.Sub(p.cpu.at)) * float64(runtime.NumCPU()); capacity > 0 {
		n.Others = max(0, float64(now.busy-p.cpu.busy-(now.ours-p.cpu.ours))/capacity)
	}
	var why []string
	if n.Pace.Spread > noisyPace {
		why = append(why, fmt.Sprintf("the same computation varied by %.0f %%", 100*n.Pace.Spread))
	}
	if n.Others > noisyOthers {
		const text = "other processes and the kernel's own threads used %.0f %% of the CPU time"
		why = append(why, fmt.Sprintf(text, 100*n.Others))
	}
	n.Noisy, n.Why = len(why) > 0, strings.Join(why, "; ")
	return n
}

// readCPU reads what has been used so far. What cannot be read counts as nothing.
func readCPU() cpuTimes {
	c := cpuTimes{at: time.Now()}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err == nil {
			c.ours += u.Utime.Nano() + u.Stime.Nano()
		}
	}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := strings.Cut(string(b), "\n")
	c.busy = busyOf(strings.Fields(line))
	return c
}

// busyOf adds up the first line of /proc/stat (proc_stat(5)), in hundredths of a second, without idle and iowait. Guest
// time is in user time already.
func busyOf(fields []string) (ns int64) {
	for i, f := range fields {
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		ns += n * int64(10*time.Millisecond)
	}
	return ns
}
