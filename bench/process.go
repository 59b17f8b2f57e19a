package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// cpuOf returns the CPU time of a process, in nanoseconds: the sum over its threads (proc_pid_schedstat(5), which
// counts nanoseconds, where stat counts in hundredths of a second). Threads that have ended are not in it; Go's do not.
func cpuOf(pid int) (int64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err == nil && len(threads) == 0 {
		err = fmt.Errorf("process %d has no threads: %w", pid, os.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, t := range threads {
		b, err := os.ReadFile(t)
		if err != nil {
			continue // it has ended since
		}
		first, _, _ := bytes.Cut(b, []byte(" "))
		ns, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", t, err)
		}
		total += ns
	}
	return total, nil
}

// peakOf returns the most memory that a process has had, in bytes (VmHWM of proc_pid_status(5)).
func peakOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(b, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("process %d: no VmHWM", pid)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}
