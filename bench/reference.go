package bench

import "fmt"

// referenceSuite is the benchmark that the reference publishes, row for row: whole shell snippets with the starts of
// their processes, and files of zeros.
func referenceSuite(z Sizes) Suite {
	s := Suite{
		Name:  "reference",
		About: "the reference's rows, like for like: shell snippets with their process starts, files of zeros",
	}
	s.Workloads = append(s.Workloads, shellFiles(z)...)
	s.Workloads = append(s.Workloads, shellTree(z)...)
	s.Workloads = append(s.Workloads, zeroFile(z)...)
	s.Workloads = append(s.Workloads, smallGit(z)...)
	s.Workloads = append(s.Workloads, tinyInstall())
	return s
}

func shellFiles(z Sizes) []Workload {
	create := fmt.Sprintf("for ((i = 0; i < %d; i++)); do echo $i > f$i; done\n", z.Files)
	count := func(n int) string { return fmt.Sprintf("(($(ls | wc -l) == %d))", n) }
	return []Workload{
		{Name: fmt.Sprintf("create %d files", z.Files), Run: create, Check: count(z.Files), Ops: z.Files},
		{
			Name: fmt.Sprintf("create, stat %d files", z.Files), Ops: z.Files, Check: count(z.Files),
			Run: create + fmt.Sprintf("for ((i = 0; i < %d; i++)); do stat f$i > /dev/null; done", z.Files),
		},
		{Name: fmt.Sprintf("create, rm %d files", z.Files), Run: create + "rm f*", Check: count(0), Ops: z.Files},
	}
}

func shellTree(z Sizes) []Workload {
	tree := fmt.Sprintf("for ((a = 0; a < %[1]d; a++)); do for ((b = 0; b < %[1]d; b++)); do\nmkdir -p d$a/d$b\n"+
		"for ((c = 0; c < %[1]d; c++)); do touch d$a/d$b/f$c; done\ndone; done\n", z.Dirs)
	check := fmt.Sprintf("(($(find . -type f | wc -l) == %d))", z.Dirs*z.Dirs*z.Dirs)
	name := fmt.Sprintf("tree %[1]d×%[1]d×%[1]d", z.Dirs)
	ops := z.Dirs*z.Dirs*z.Dirs + z.Dirs*z.Dirs
	return []Workload{
		{Name: "mkdir " + name, Run: tree, Check: check, Ops: ops},
		{Name: "mkdir, find " + name, Run: tree + "find . -type f > /dev/null", Check: check, Ops: ops},
	}
}

func zeroFile(z Sizes) []Workload {
	mib := z.Bytes >> 20
	write := fmt.Sprintf("dd if=/dev/zero of=f bs=1M count=%d 2> /dev/null\n", mib)
	size := func(name string) string { return fmt.Sprintf("(($(stat -c %%s %s) == %d))", name, z.Bytes) }
	row := func(verb, setup, run, check string) Workload {
		return Workload{
			Name: fmt.Sprintf("%s %d MiB", verb, mib), Setup: setup, Run: run, Check: check, Bytes: z.Bytes, Space: 2 * z.Bytes,
		}
	}
	return []Workload{
		row("write", "", write, size("f")),
		row("write, copy", "", write+"cp f g", "cmp f g && "+size("g")),
		row("write, read", "", write+"cat f > /dev/null", size("f")),
		row("pure read", write, "cat f > /dev/null", size("f")),
		row("pure copy", write, "cp f g", "cmp f g && "+size("g")),
		row("overwrite", write, fmt.Sprintf("dd if=/dev/zero of=f bs=1M count=%d conv=notrunc 2> /dev/null", mib), size("f")),
	}
}

// smallGit has a repository of its own for the clone: a shallow one of about a megabyte, without a network.
func smallGit(z Sizes) []Workload {
	files := max(1, z.Commits/10)
	origin := `if ! [[ -d $SCRATCH/origin.git ]]; then
  git init -q "$SCRATCH/origin"
  cd "$SCRATCH/origin"
  for ((i = 0; i < 64; i++)); do head -c 16384 /dev/urandom > f$i; done
  git add . && git commit -qm first && echo more > more && git add . && git commit -qm second
  git clone -q --bare . "$SCRATCH/origin.git"
fi`
	return []Workload{
		{
			Name: fmt.Sprintf("git init, commit %d files", files), Needs: []string{"git"}, Ops: files,
			Run: fmt.Sprintf("git init -q .\nfor ((i = 0; i < %d; i++)); do echo $i > f$i; done\n", files) +
				"git add .\ngit commit -qm all",
			Check: fmt.Sprintf("(($(git ls-tree HEAD | wc -l) == %d)) && git fsck --no-progress", files),
		},
		{
			Name: "git clone, shallow, 1 MB", Needs: []string{"git"}, Bytes: 1 << 20, Setup: origin,
			Run: `git clone -q --depth 1 "file://$SCRATCH/origin.git" clone`, Check: "(($(ls clone | wc -l) == 65))",
		},
	}
}

// tinyInstall installs a package that lies beside it, so that the network is not what is measured.
func tinyInstall() Workload {
	return Workload{
		Name: "npm init, install one package", Needs: []string{"npm"},
		Setup: `if ! [[ -f $SCRATCH/tiny.tgz ]]; then
  mkdir -p "$SCRATCH/package"
  echo '{"name":"tiny","version":"1.0.0"}' > "$SCRATCH/package/package.json"
  echo 'module.exports = 1' > "$SCRATCH/package/index.js"
  tar -C "$SCRATCH" -czf "$SCRATCH/tiny.tgz" package
fi`,
		Run:   `npm init -y > /dev/null && npm install --offline --no-audit --no-fund "$SCRATCH/tiny.tgz" > /dev/null`,
		Check: "[[ -f node_modules/tiny/index.js ]]",
	}
}
