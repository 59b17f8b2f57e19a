package bench

import "fmt"

// storeSuite measures the parts of the store, without a kernel in between.
func storeSuite(z Sizes) Suite {
	s := Suite{
		Name: "store", About: "the parts of the store, in one process on the local disk, without a mount", Alone: true,
	}
	sized := func(name, step string, bytes int64) {
		w := stepRow(name, "", fmt.Sprintf("step store-%s %d", step, bytes))
		w.Bytes, w.Space = bytes, 2*bytes
		s.Workloads = append(s.Workloads, w)
	}
	counted := func(name, step string, n int) {
		w := stepRow(name, "", fmt.Sprintf("step store-%s %d", step, n))
		w.Ops = n
		s.Workloads = append(s.Workloads, w)
	}
	n := z.Bytes
	sized("hash (SHA-256)", "hash", n)
	sized("split", "split", n)
	sized("compress random bytes (s2)", "encode-random", n)
	sized("compress text (s2)", "encode-text", n)
	sized("compress text when idle (zstd)", "recompress-text", n)
	sized("decompress text (s2)", "decode-text", n)
	sized("put chunks, sync", "append", n)
	sized("get chunks, verified", "read", n)
	sized("write a file, fsync", "write", n)
	counted("create a file, commit all", "create", 10*z.Files)
	counted("look a name up", "lookup", 10*z.Files)
	counted("commit a directory", "commit", max(1, z.Commits/10))
	counted("open and close a store", "open", max(1, z.Commits/100))
	return s
}
