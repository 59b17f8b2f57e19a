package bench

import "fmt"

// workSuite is what people do all day, on trees that are made anew for each run.
func workSuite(z Sizes) Suite {
	s := Suite{Name: "work", About: "real programs on generated trees, new in each run; process starts included"}
	s.Workloads = append(s.Workloads, treeRows(z)...)
	s.Workloads = append(s.Workloads, gitRows(z)...)
	s.Workloads = append(s.Workloads, goBuild(), npmInstall(z))
	s.Workloads = append(s.Workloads, sqliteRows(z)...)
	return s
}

const untar = `tar -xf "$DATA"` + "\n"

// onTree is a row about the source tree, which lies in $DATA.
func onTree(z Sizes, name, setup, run, check string) Workload {
	return Workload{
		Name: fmt.Sprintf(name, z.Tree), Data: sourceTree(z.Tree), Setup: setup, Run: run, Check: check, Ops: z.Tree,
		Space: int64(z.Tree) * 20_000, Inodes: 3 * int64(z.Tree),
	}
}

func treeRows(z Sizes) []Workload {
	files := func(dir string) string { return fmt.Sprintf("(($(find %s -type f | wc -l) == %d))", dir, z.Tree) }
	// grep reads everything, prints nothing and exits with 1.
	const grep = "grep -r 'no file has this' tree || (($? == 1))\n"
	cold := onTree(z, "grep -r in %d files, cold", untar, grep, "")
	cold.Cold = true
	rg := onTree(z, "ripgrep in %d files, warm", untar+grep, "rg 'no file has this' tree || (($? == 1))", "")
	rg.Needs = []string{"rg"}
	return []Workload{
		onTree(z, "untar %d files", "", untar, files("tree")+` && tar -df "$DATA"`),
		onTree(z, "rm -rf %d files", untar, "rm -rf tree", "! [[ -e tree ]]"),
		onTree(z, "cp -r %d files", untar, "cp -r tree copy", files("copy")),
		onTree(z, "cp -a %d files", untar, "cp -a tree copy", "diff -r tree copy"),
		onTree(z, "find %d files, first", untar, "find tree -type f > /dev/null", ""),
		onTree(z, "grep -r in %d files, first", untar, grep, ""),
		onTree(z, "grep -r in %d files, warm", untar+grep, grep, ""),
		cold,
		rg,
	}
}

func gitRows(z Sizes) []Workload {
	const commit = "git -C tree init -q && git -C tree add . && git -C tree commit -qm all\n"
	const status = "git -C tree status > /dev/null\n"
	rows := []Workload{
		onTree(z, "git add, commit %d files", untar, commit, "git -C tree fsck --no-progress"),
		onTree(z, "git status in %d files, warm", untar+commit+status, status, ""),
		onTree(z, "git clone %d files", untar+commit, "git clone -q --no-hardlinks tree clone", "git -C clone diff --quiet"),
	}
	for i := range rows {
		rows[i].Needs = []string{"git"}
		rows[i].Space *= 3
	}
	return rows
}

// goBuild has the standard library in the cache before the timer, outside of the target; the sources, the temporary
// files and the program are inside.
func goBuild() Workload {
	return Workload{
		Name: fmt.Sprintf("go build, %d packages", goPackages), Data: goModule, Needs: []string{"go"}, Ops: goPackages,
		Setup: "go build runtime\n" + untar + "mkdir tmp",
		Run:   `cd module && TMPDIR="$PWD/../tmp" go build -o program .`,
		Check: "./module/program 2> /dev/null",
		Space: 64 << 20,
	}
}

func npmInstall(z Sizes) Workload {
	files := z.Packages * npmFiles
	return Workload{
		Name: fmt.Sprintf("npm ci, %d packages, %d files", z.Packages, files), Data: npmSources(z.Packages),
		Needs: []string{"npm"},
		Setup: untar + `for d in packages/*/; do tar -C "$d" -czf "${d%/}.tgz" package; rm -r "$d"; done`,
		Run:   "npm ci --offline --no-audit --no-fund > /dev/null",
		Check: fmt.Sprintf("(($(find node_modules/*/ -type f | wc -l) == %d))", files), Ops: files,
		Space: int64(files) * 30_000, Inodes: 2 * int64(files),
	}
}

// sqliteRows insert a row in each transaction, durable before the next.
func sqliteRows(z Sizes) []Workload {
	const schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB);"
	row := func(mode string) Workload {
		pragma := fmt.Sprintf("PRAGMA journal_mode=%s; PRAGMA synchronous=FULL;", mode)
		return Workload{
			Name: fmt.Sprintf("SQLite, %d transactions, %s", z.Commits, mode), Needs: []string{"sqlite3"}, Ops: z.Commits,
			Setup: fmt.Sprintf(`sqlite3 db '%s %s' > /dev/null`, pragma, schema),
			Run: fmt.Sprintf(`{
  echo '%s'
  for ((i = 0; i < %d; i++)); do echo 'INSERT INTO t (v) VALUES (randomblob(100));'; done
} | sqlite3 db > /dev/null`, pragma, z.Commits),
			Check: fmt.Sprintf(`(($(sqlite3 db 'SELECT count(*) FROM t') == %d))`, z.Commits),
		}
	}
	return []Workload{row("DELETE"), row("WAL")}
}
