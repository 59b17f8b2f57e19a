package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// fioSuite runs fio, whose rows other filesystems publish. The times are fio's own: it takes longer to start than some
// of its jobs to run.
func fioSuite(z Sizes) Suite {
	s := Suite{Name: "fio", About: "fio: sequential and random, by its own clock; random bytes"}
	for _, jobs := range []int{1, 4} {
		for _, kind := range []struct{ name, rw, bs string }{
			{"write", "write", "1M"}, {"read", "read", "1M"},
			{"random write", "randwrite", "4k"}, {"random read", "randread", "4k"},
		} {
			name := fmt.Sprintf("%s, %s, jobs: %d", kind.name, kind.bs, jobs)
			s.Workloads = append(s.Workloads, fioRow(z, name, kind.rw, "--bs="+kind.bs, jobs, max(z.Bytes, 4<<20)))
		}
	}
	s.Workloads = append(s.Workloads,
		fioRow(z, "random read, 4k, mmap", "randread", "--bs=4k --ioengine=mmap", 1, z.Bytes),
		fioRow(z, "random write, 4k, mmap", "randwrite", "--bs=4k --ioengine=mmap", 1, z.Bytes),
		fioRow(z, "random write, 4k, fsync each", "randwrite", "--bs=4k --fsync=1", 1, max(4096*8, z.Bytes>>8)),
	)
	return s
}

// fioRow has each job work on a file of its own; total is what they move together, in bytes. Files that are written
// from the start are not there before.
func fioRow(z Sizes, name, rw, options string, jobs int, total int64) Workload {
	command := fmt.Sprintf("fio --name=job --rw=%s %s --size=%d --numjobs=%d --group_reporting --invalidate=0 "+
		"--refill_buffers --randrepeat=0 --fallocate=none --output-format=json", rw, options, total/int64(jobs), jobs)
	w := Workload{
		Name: name, Run: command, Bytes: total, Space: 2 * z.Bytes, Needs: []string{"fio"},
		Time: func(stdout []byte) (time.Duration, error) { return fioTime(stdout, jobs) },
	}
	if rw != "write" {
		// fio has the kernel forget what it has laid out.
		w.Setup = command + " --create_only=1 > /dev/null && cat job.* > /dev/null"
	}
	return w
}

// fioTime reads how long the jobs of a group have waited for their reads, writes and syncs, divided by how many jobs
// there were. fio's runtime is in whole milliseconds, and holds the making of random bytes.
func fioTime(stdout []byte, jobs int) (time.Duration, error) {
	var report struct {
		Jobs []struct {
			Read, Write, Sync fioSide
		} `json:"jobs"`
	}
	if err := json.Unmarshal(stdout, &report); err != nil {
		return 0, fmt.Errorf("fio's report: %w", err)
	}
	if len(report.Jobs) != 1 {
		return 0, fmt.Errorf("fio's report has %d groups, not 1", len(report.Jobs))
	}
	g := report.Jobs[0]
	total := g.Read.waited() + g.Write.waited() + g.Sync.waited()
	if total <= 0 {
		return 0, errors.New("fio has moved nothing")
	}
	return time.Duration(total / float64(jobs)), nil
}

// fioSide is one kind of operation in fio's report.
type fioSide struct {
	Ops     float64 `json:"total_ios"`
	Latency struct {
		Mean float64 `json:"mean"`
	} `json:"lat_ns"`
}

// waited is the time of all operations together, in nanoseconds.
func (s fioSide) waited() float64 { return s.Ops * s.Latency.Mean }
