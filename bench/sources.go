package bench

import (
	"archive/tar"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
)

// Sources for the suite work. Each is a tar stream; no file has the bytes of one in another stream, because its first
// line holds a random number.

// writer makes files of a tar stream. The first error stays and is returned by close.
type writer struct {
	tar    *tar.Writer
	random *rand.Rand
	err    error
}

func newWriter(w io.Writer, random *rand.ChaCha8) *writer {
	return &writer{tar: tar.NewWriter(w), random: rand.New(random)}
}

func (w *writer) file(name, content string) {
	if w.err != nil {
		return
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR}
	if w.err = w.tar.WriteHeader(h); w.err == nil {
		_, w.err = io.WriteString(w.tar, content)
	}
}

func (w *writer) close() error {
	if w.err != nil {
		return w.err
	}
	return w.tar.Close()
}

// nonce is a line that no other file has.
func (w *writer) nonce(comment string) string {
	return fmt.Sprintf("%s %016x\n", comment, w.random.Uint64())
}

// sourceTree is a tree of n files that look like source code: three levels of directories, a dozen files in each, sizes
// around 3 kB with a long tail.
func sourceTree(n int) func(io.Writer, *rand.ChaCha8) error {
	return func(out io.Writer, random *rand.ChaCha8) error {
		w := newWriter(out, random)
		for i := range n {
			dir := fmt.Sprintf("tree/p%02d/q%02d/r%02d", i/1200, i/120%10, i/12%10)
			w.file(fmt.Sprintf("%s/file%02d.go", dir, i%12), w.nonce("//")+prose(w.random, treeSize(w.random)))
		}
		return w.close()
	}
}

// treeSize draws from a log-normal distribution as in source trees, cut at 256 KiB.
func treeSize(random *rand.Rand) int { return min(int(math.Exp(8+1.2*random.NormFloat64())), 256<<10) }

// prose is about n bytes of words in lines.
func prose(random *rand.Rand, n int) string {
	const words = "func return if err nil for range context store chunk offset length reader writer buffer index commit"
	list := strings.Fields(words)
	var b strings.Builder
	b.Grow(n + 16)
	for b.Len() < n {
		b.WriteString(list[random.IntN(len(list))])
		if random.IntN(8) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// goPackages is how many packages the Go module has.
const goPackages = 40

// goModule is a program of many packages that import nothing.
func goModule(out io.Writer, random *rand.ChaCha8) error {
	w := newWriter(out, random)
	w.file("module/go.mod", "module example.com/module\n\ngo 1.21\n")
	var imports, calls strings.Builder
	for i := range goPackages {
		fmt.Fprintf(&imports, "\t\"example.com/module/p%d\"\n", i)
		fmt.Fprintf(&calls, "\tsum += p%d.F%d(sum)\n", i, 0)
		for j := range 5 {
			w.file(fmt.Sprintf("module/p%d/f%d.go", i, j), w.nonce("//")+goFile(i, j, w.random))
		}
	}
	w.file("module/main.go", "package main\n\nimport (\n"+imports.String()+")\n\nfunc main() {\n\tsum := 1\n"+
		calls.String()+"\tprintln(sum)\n}\n")
	return w.close()
}

// goFile has functions that the compiler has some work with.
func goFile(pkg, file int, random *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package p%d\n", pkg)
	for k := range 20 {
		fmt.Fprintf(&b, "\n// F%d counts.\nfunc F%d(n int) int {\n", 20*file+k, 20*file+k)
		for range 6 {
			fmt.Fprintf(&b, "\tfor i := 0; i < n%%%d; i++ {\n\t\tn += i*%d ^ n>>3\n\t}\n", 2+random.IntN(90), random.IntN(1000))
		}
		b.WriteString("\treturn n\n}\n")
	}
	return b.String()
}

// npmFiles is how many files an npm package has, as one of the usual kind does.
const npmFiles = 40

// npmSources are packages of npmFiles files each and a project that needs them all, with its lock file.
func npmSources(packages int) func(io.Writer, *rand.ChaCha8) error {
	return func(out io.Writer, random *rand.ChaCha8) error {
		w := newWriter(out, random)
		var needs, locks []string
		for i := range packages {
			name := fmt.Sprintf("package%03d", i)
			w.file("packages/"+name+"/package/package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name))
			for j := range npmFiles - 1 {
				w.file(fmt.Sprintf("packages/%s/package/lib/file%d.js", name, j),
					w.nonce("//")+"/* "+prose(w.random, treeSize(w.random))+" */\n")
			}
			spec := fmt.Sprintf("file:packages/%s.tgz", name)
			needs = append(needs, fmt.Sprintf("%q:%q", name, spec))
			locks = append(locks, fmt.Sprintf(`"node_modules/%s":{"version":"1.0.0","resolved":%q}`, name, spec))
		}
		dependencies := `"dependencies":{` + strings.Join(needs, ",") + `}`
		w.file("package.json", `{"name":"project","version":"1.0.0",`+dependencies+`}`)
		w.file("package-lock.json", `{"name":"project","version":"1.0.0","lockfileVersion":3,"packages":{"":{`+
			`"name":"project","version":"1.0.0",`+dependencies+`},`+strings.Join(locks, ",")+`}}`)
		return w.close()
	}
}
