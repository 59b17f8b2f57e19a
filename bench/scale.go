package bench

import "fmt"

// scaleSuite shows how the cost of a unit grows: with the number of files, and with the size of one.
func scaleSuite(z Sizes) Suite {
	s := Suite{
		Name: "scale",
		About: "the cost of a file at growing numbers of files, and of a mebibyte at growing sizes; in one process, " +
			"random bytes",
	}
	for n := 1000; n < z.MaxFiles; n *= 10 {
		s.Workloads = append(s.Workloads, filesAt(n)...)
	}
	s.Workloads = append(s.Workloads, filesAt(z.MaxFiles)...)
	for n := int64(1 << 20); n < z.MaxBytes; n *= 8 {
		s.Workloads = append(s.Workloads, bytesAt(n)...)
	}
	s.Workloads = append(s.Workloads, bytesAt(z.MaxBytes)...)
	return s
}

// fewRounds is how often rows are run that take seconds and more: their times vary less than those of short ones.
const fewRounds = MinRounds

func filesAt(n int) (rows []Workload) {
	for _, verb := range []string{"create", "stat", "list", "unlink"} {
		before := ""
		if verb != "create" {
			before = fmt.Sprintf("step tree-create %d", n)
		}
		w := stepRow(fmt.Sprintf("%s %s files", verb, count(int64(n))), before, fmt.Sprintf("step tree-%s %d", verb, n))
		w.Ops, w.Series, w.N = n, verb+" a file", int64(n)
		w.Space, w.Inodes, w.Rounds = int64(n)*4096, int64(n), fewRounds
		rows = append(rows, w)
	}
	return rows
}

func bytesAt(n int64) []Workload {
	fill := fmt.Sprintf("step write-fsync %d %d", n, block)
	write := stepRow("write, fsync "+size(n), "", fill)
	write.Series = "write a MiB, fsync at the end"
	read := stepRow("read "+size(n), fill, fmt.Sprintf("step read %d %d", n, block))
	read.Series = "read a MiB"
	write.Bytes, read.Bytes = n, n
	tail := stepRow("append a byte to "+size(n)+", fsync", fill, "step append-fsync 20")
	tail.Series, tail.Ops = "append a byte, fsync", 20
	rows := []Workload{write, read, tail}
	for i := range rows {
		rows[i].N, rows[i].Sized, rows[i].Space, rows[i].Rounds = n, true, 2*n, fewRounds
	}
	return rows
}
