package shell

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"mvdan.cc/sh/v3/syntax"
)

// pieces are what scripts are made of: those of the corpora, of testdata, and of the commands' transcripts.
type pieces struct {
	sources []string
	stmts   []*syntax.Stmt // of all of them, inner ones too
	words   []*syntax.Word
}

func readPieces(t testing.TB) *pieces {
	t.Helper()
	var p pieces
	for _, c := range readCases[oilsCase](t, "oils.jsonl") {
		p.add(c.Script)
	}
	for _, c := range readCases[recordedCase](t, "recorded.jsonl") {
		p.add(c.Command)
	}
	for _, c := range languageCases(t) {
		p.add(c.script)
	}
	paths, err := filepath.Glob("command/toolbox/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, paths)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.Split("\n"+string(a.Files[len(a.Files)-1].Data), "\n$ ")[1:] {
			lines := strings.Split(c, "\n")
			script := lines[0]
			for _, l := range lines[1:] {
				if more, ok := strings.CutPrefix(l, ">"); ok {
					script += "\n" + strings.TrimPrefix(more, " ")
				}
			}
			p.add(script)
		}
	}
	return &p
}

func (p *pieces) add(source string) {
	p.sources = append(p.sources, source)
	if f, err := parsePieces(source); err == nil {
		stmts, words := nodes(f)
		p.stmts, p.words = append(p.stmts, stmts...), append(p.words, words...)
	}
}

func parsePieces(source string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(source), "")
}

// frames are what a statement, @, is put into, some with another one, #.
var frames = []string{
	"for i in 1 2; do @; done", "while read -r x y; do @; done < test.txt", "until @; do break; done", "for ((n = 0; n < 3; n++)); do @; done",
	"(@)", "{ @; } 2>&1 | { #; }", "@ &", "@ & wait", "x=$(@); echo \"$x\"", "f() { @; }; f a 'b c'; f", "f() { local x=1 y; @; #; }; f | cat",
	"if @; then #; else @; fi", "@ && #", "@ || #", "! @", "trap '#' EXIT; @", "trap 'echo err $?' ERR; @", "trap '#' DEBUG; @", "set -eu; @", "set -x; @",
	"set -o pipefail; @ | #", "cat < <(@)", "tee >(@) < test.txt", "{ @; } > out.txt; cat out.txt", "exec 3> out.txt; { @; } >&3; #",
	"case $x in a*) @ ;& *) # ;; esac", "mapfile -t a < <(@); #", "coproc { @; }\nwait", "timeout 0.01 bash -c '@'", "eval '@'", "bash -c '@' | #",
	"{ sleep 0.001; kill $$; } & @", "shopt -s extglob nullglob globstar; @", "IFS=:; @", "time @", "@ > /dev/full", "{ @; } <&-", "echo ${x:-$(@)} \"${a[@]@Q}\"",
	"unset x; readonly x; @", "ulimit -n 5; @", "cat <<E\n$(@)\nE\n#", "@; @", "( @ ) & ( # ) & wait -n; kill %1; wait", "return 3; @",
}

// recombine makes a script of a script: some of its statements and words give way to others, or to frames with them.
func (p *pieces) recombine(source string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	if r.IntN(2) == 0 {
		source = p.sources[r.IntN(len(p.sources))]
	}
	for range 1 + r.IntN(4) {
		f, err := parsePieces(source) // anew: a tree that has had a change shares nodes with the pieces
		if err != nil {
			return source
		}
		p.change(r, f)
		source = printed(f)
	}
	return source
}

func (p *pieces) change(r *rand.Rand, f *syntax.File) {
	stmts, words := nodes(f)
	switch {
	case len(stmts) == 0:
		f.Stmts = append(f.Stmts, pick(r, p.stmts))
	case r.IntN(3) == 0 && len(words) > 0:
		*pick(r, words) = *pick(r, p.words)
	case r.IntN(2) == 0:
		*pick(r, stmts) = *pick(r, p.stmts)
	default:
		at := pick(r, stmts)
		inner, other := printed(at), printed(pick(r, p.stmts))
		text := strings.NewReplacer("@;", inner+"\n", "@", inner, "#;", other+"\n", "#", other).Replace(pick(r, frames))
		if framed, err := parsePieces(text); err == nil && len(framed.Stmts) > 0 {
			*at = syntax.Stmt{Cmd: &syntax.Block{Stmts: framed.Stmts}}
		}
	}
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func nodes(f *syntax.File) (stmts []*syntax.Stmt, words []*syntax.Word) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			stmts = append(stmts, n)
		case *syntax.Word:
			words = append(words, n)
		}
		return true
	})
	return stmts, words
}

// printed is the source of a tree, or of a command that does nothing: the printer panics at some trees that no parser makes.
func printed(n syntax.Node) (source string) {
	defer func() {
		if recover() != nil {
			source = ":"
		}
	}()
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, n); err != nil {
		return ":"
	}
	return b.String()
}
