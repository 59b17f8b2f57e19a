package bench

import "fmt"

// shellSuite is one-liners on files that were made before the timer: one process, or the shell itself, for a thousand
// names, so that the starts of processes do not hide the filesystem.
func shellSuite(z Sizes) Suite {
	s := Suite{
		Name: "shell",
		About: "one-liners on what was made before the timer, one process for all names; random bytes; cold: after " +
			"dropping the kernel's caches",
	}
	s.Workloads = append(s.Workloads, fileSnippets(z)...)
	s.Workloads = append(s.Workloads, treeSnippets(z)...)
	s.Workloads = append(s.Workloads, byteSnippets(z)...)
	return s
}

func fileSnippets(z Sizes) []Workload {
	loop := func(redirect string) string {
		return fmt.Sprintf("for ((i = 0; i < %d; i++)); do echo $i %s f$i; done\n", z.Files, redirect)
	}
	row := func(verb, setup, run, check string) Workload {
		return Workload{
			Name: fmt.Sprintf("%s %d files", verb, z.Files), Setup: setup, Run: run, Check: check, Ops: z.Files,
		}
	}
	lines := fmt.Sprintf("(($(cat f* | wc -l) == %d))", 2*z.Files)
	return []Workload{
		row("create", "", loop(">"), fmt.Sprintf("(($(ls | wc -l) == %d))", z.Files)),
		row("stat", loop(">"), "stat f* > /dev/null", ""),
		row("cat", loop(">"), "cat f* > /dev/null", ""),
		row("cat again", loop(">")+"cat f* > /dev/null", "cat f* > /dev/null", ""),
		row("append to", loop(">"), loop(">>"), lines),
		row("rm", loop(">"), "rm f*", "! ls f*"),
	}
}

func treeSnippets(z Sizes) []Workload {
	last := z.Dirs - 1
	dirs := fmt.Sprintf("d{0..%[1]d}/d{0..%[1]d}", last)
	tree := fmt.Sprintf("mkdir -p %[1]s\nfor f in %[1]s/f{0..%[2]d}; do : > $f; done\n", dirs, last)
	files := z.Dirs * z.Dirs * z.Dirs
	row := func(verb, setup, run, check string) Workload {
		return Workload{
			Name: fmt.Sprintf("%s a tree of %d files", verb, files), Setup: setup, Run: run, Check: check,
			Ops: files + z.Dirs*z.Dirs + z.Dirs,
		}
	}
	const find = "find . -type f > /dev/null"
	cold := row("find in, cold,", tree, find, "")
	cold.Cold = true
	return []Workload{
		row("make", "", tree, fmt.Sprintf("(($(find . -type f | wc -l) == %d))", files)),
		row("find in", tree, find, ""),
		cold,
		row("rm -rf", tree, "rm -rf d*", "! ls d*"),
	}
}

func byteSnippets(z Sizes) []Workload {
	const write = `dd if="$DATA" of=f bs=1M 2> /dev/null` + "\n"
	const read = "cat f > /dev/null\n"
	const same = `cmp f "$DATA"`
	row := func(verb, setup, run, check string) Workload {
		return Workload{
			Name: fmt.Sprintf("%s %d MiB", verb, z.Bytes>>20), Data: randomData(z.Bytes), Setup: setup, Run: run, Check: check,
			Bytes: z.Bytes, Space: 2 * z.Bytes,
		}
	}
	cold := row("read, cold,", write, read, same)
	cold.Cold = true
	return []Workload{
		row("write", "", write, same),
		row("write, fsync", "", `dd if="$DATA" of=f bs=1M conv=fsync 2> /dev/null`, same),
		row("read, just written,", write, read, ""),
		row("read, warm,", write+read, read, ""),
		cold,
		row("cp", write, "cp f g", `cmp g "$DATA"`),
		row("overwrite", `dd if=/dev/zero of=f bs=1M count=$(($(stat -c %s "$DATA") >> 20)) 2> /dev/null`,
			`dd if="$DATA" of=f bs=1M conv=notrunc 2> /dev/null`, same),
	}
}
