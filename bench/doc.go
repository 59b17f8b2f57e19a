// Package bench measures a mount beside other filesystems, in one run, with the same work.
//
// A [Workload] is a row: a script whose text is the same for every [Target]. A [Suite] is a list of them. [Run] runs
// suites and returns a [Report], which can be shown as a table, as a page, beside an older one, and as JSON with every
// single sample.
//
// # What makes it honest
//
//   - Every run has a fresh directory. Preparing it, looking whether the work was done, and removing it are outside of
//     the timer; so is waiting until all is on the disk, before the next run begins.
//   - Each row is a warm-up and then rounds. The order of the targets is shuffled in every round, from a seed that the
//     report names.
//   - The mount is made as users make it, by 'carrel mount' with nothing set, on a store that is fresh for each suite,
//     with the durability that is delivered.
//   - Random bytes are new in each run: a store that has seen them before would not have to keep them.
//   - A ratio is of medians and has an interval of 95 %, from resampling the rounds. A cell whose times vary too much
//     is marked, and so is a report that was made on a machine with other work to do.
//   - What could not run says why, and what went wrong says what.
//
// # Processes
//
//	carrel bench ── scripts (bash, each a process group) ── programs, and steps: this program again
//	     └───────── carrel mount ── daemon: its CPU time, memory and requests are what the report tells
//
// This process never has a working directory or an open file in a target: what hangs there must not hang it.
//
// # What is left behind
//
// Nothing, when Run returns: mounts, processes and files are gone, also after its context has ended. When this process
// is killed, the processes that hold mounts get SIGTERM from the kernel and unmount; a tmpfs, and the directory
// carrel-bench-* with the files, stay.
package bench
