package bench

import (
	"io"
	"math/rand/v2"
	"time"
)

// Workload is one row: work whose text is the same for every target. The scripts are bash, run by a process of their
// own, with these names:
//
//	$DATA       a file of fresh bytes, made by Data before each run, outside of the target
//	$SCRATCH    a directory outside of the target, the same for all runs
//	step NAME…  a step of package step, in a process of its own
type Workload struct {
	Name string
	// Setup is done before the timer, in a fresh directory that is the working directory; Run is what is timed; Check
	// fails when the work was not done, and is run after the warm-up.
	Setup, Run, Check string
	// Data makes $DATA. What it takes from the source differs each time: no target has seen the bytes before.
	Data func(w io.Writer, random *rand.ChaCha8) error
	// Cold drops what the kernel caches between Setup and Run. The caches of a target's own processes stay.
	Cold bool
	// Time reads the duration from what Run has printed. Nil: the wall time of the process that runs Run, its start
	// included.
	Time func(stdout []byte) (time.Duration, error)
	// Ops is how many operations Run does, for requests and time per operation; Bytes how many it moves, for a rate.
	// Zero: it has no such number.
	Ops   int
	Bytes int64
	// Space is how many bytes and Inodes how many files the target must have room for, and half as much again.
	Space  int64
	Inodes int64
	// Needs are the programs that it runs.
	Needs []string
	// Series and N place the row on a curve: its cost per operation or byte, at N of them.
	Series string
	N      int64
	Sized  bool // N is in bytes
	// Rounds bounds the rounds of a row that takes long. Zero: all.
	Rounds int
}

// Suite is a list of workloads with a name.
type Suite struct {
	Name  string
	About string
	// Alone is for a suite that measures no mount but a part of this program: only one target is used, a directory on
	// the local disk.
	Alone     bool
	Workloads []Workload
}

// Sizes say how much the workloads do.
type Sizes struct {
	Files    int   // of the rows about many small files
	Dirs     int   // the tree of directories has Dirs × Dirs of them with Dirs files each
	Bytes    int64 // of the rows about one file
	Tree     int   // files of the source tree of the suite work
	Commits  int   // files of the git rows, transactions of the SQLite rows
	Packages int   // npm packages, of 40 files each
	MaxFiles int   // the end of the curve by number of files
	MaxBytes int64 // the end of the curve by size of the file
}

// FullSizes are those of the published rows.
func FullSizes() Sizes {
	return Sizes{
		Files: 1000, Dirs: 10, Bytes: 64 << 20, Tree: 10_000, Commits: 1000, Packages: 200,
		MaxFiles: 100_000, MaxBytes: 1 << 30,
	}
}

// SmokeSizes are for trying whether everything works; their times mean nothing.
func SmokeSizes() Sizes {
	return Sizes{Files: 20, Dirs: 3, Bytes: 1 << 20, Tree: 60, Commits: 10, Packages: 2, MaxFiles: 1000, MaxBytes: 1 << 20}
}
