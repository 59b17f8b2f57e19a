package bench

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/carrelfs/carrel/bench/step"
)

// realSuite is what the reference's rows leave out: bytes that are not zeros, work inside of one process, and caches
// that are cold.
func realSuite(z Sizes) Suite {
	s := Suite{
		Name: "real",
		About: "random bytes, new in each run; names in one process, without process starts; cold: after dropping the " +
			"kernel's caches, not the daemon's",
	}
	s.Workloads = append(s.Workloads, nameRows(z)...)
	s.Workloads = append(s.Workloads, byteRows(z)...)
	s.Workloads = append(s.Workloads, syncRows(z)...)
	return s
}

// stepRow is a row of one step, after another that is not timed, if any.
func stepRow(name, before, timed string) Workload {
	if before != "" {
		before += " > /dev/null"
	}
	return Workload{Name: name, Setup: before, Run: timed, Time: step.Time}
}

func nameRows(z Sizes) []Workload {
	n := z.Files
	create := fmt.Sprintf("step create %d", n)
	rows := []Workload{stepRow(fmt.Sprintf("create %d files of 1 kB", n), "", create)}
	for _, verb := range []string{"stat", "cat", "append", "rename", "unlink"} {
		name := fmt.Sprintf("%s %d, right after writing", verb, n)
		rows = append(rows, stepRow(name, create, fmt.Sprintf("step %s %d", verb, n)))
	}
	makeTree := fmt.Sprintf("step tree-create %d", 10*n)
	for _, verb := range []string{"stat", "list"} {
		run := fmt.Sprintf("step tree-%s %d", verb, 10*n)
		cold := stepRow(fmt.Sprintf("%s %d in a tree, cold", verb, 10*n), makeTree, run)
		cold.Cold = true
		rows = append(rows, stepRow(fmt.Sprintf("%s %d in a tree", verb, 10*n), makeTree, run), cold)
	}
	for i := range rows {
		rows[i].Ops = n
		if i > 5 {
			rows[i].Ops = 10 * n
		}
	}
	return rows
}

// block is what programs that copy files write at once.
const block = 128 << 10

func byteRows(z Sizes) []Workload {
	n, pages := z.Bytes, z.Bytes/4096
	title := func(verb string) string { return fmt.Sprintf("%s %d MiB", verb, n>>20) }
	sized := func(verb string) string { return fmt.Sprintf("step %s %d %d", verb, n, block) }
	fill := sized("write")
	cold := stepRow(title("read")+", cold", fill, sized("read"))
	cold.Cold = true
	rows := []Workload{
		stepRow(title("write"), "", sized("write")),
		stepRow(title("write, fsync"), "", sized("write-fsync")),
		stepRow(title("overwrite"), fill, sized("overwrite")),
		stepRow(title("read"), fill, sized("read")),
		cold,
		stepRow(title("map, read"), fill, fmt.Sprintf("step map-read %d", n)),
		stepRow(title("write pages at random,"), fill, fmt.Sprintf("step random-write %d %d", n, pages)),
		stepRow(title("read pages at random,"), fill, fmt.Sprintf("step random-read %d %d", n, pages)),
		{
			Name: title("dd a file of"), Data: randomData(n), Run: `dd if="$DATA" of=f bs=1M 2> /dev/null`,
			Check: `cmp f "$DATA"`,
		},
		{Name: title("cp"), Data: randomData(n), Setup: `cp "$DATA" f`, Run: "cp f g", Check: `cmp g "$DATA"`},
	}
	for i := range rows {
		rows[i].Bytes, rows[i].Space = n, 2*n
	}
	return rows
}

func syncRows(z Sizes) []Workload {
	count := max(1, z.Commits/50)
	row := stepRow(fmt.Sprintf("append a byte to %d MiB, fsync", z.Bytes>>20),
		fmt.Sprintf("step write-fsync %d %d", z.Bytes, block), fmt.Sprintf("step append-fsync %d", count))
	row.Ops, row.Space = count, 2*z.Bytes
	return []Workload{row}
}

// randomData is n random bytes.
func randomData(n int64) func(io.Writer, *rand.ChaCha8) error {
	return func(w io.Writer, random *rand.ChaCha8) error {
		_, err := io.CopyN(w, random, n)
		return err
	}
}
