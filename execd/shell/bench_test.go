package shell

import (
	"context"
	"io"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func benchScript(b *testing.B, script string) {
	b.Helper()
	cfg := Config{Tree: vfstest.NewTree(), Stdout: io.Discard, Stderr: io.Discard, Seed: 1}
	for b.Loop() {
		if status, err := Run(context.Background(), cfg, script); status != 0 || err != nil {
			b.Fatal(status, err)
		}
	}
}

// BenchmarkEcho is a whole script: its start, its parse, one command and its end.
func BenchmarkEcho(b *testing.B) { benchScript(b, "echo hi") }

// BenchmarkSubstitutions is ten thousand substitutions in one script.
func BenchmarkSubstitutions(b *testing.B) {
	benchScript(b, "for ((i = 0; i < 10000; i++)); do x=$(echo); done")
}

func BenchmarkLoop(b *testing.B) {
	benchScript(b, "for ((i = 0; i < 10000; i++)); do x=$i; y=$((x * 2)); done")
}

func BenchmarkPipeline(b *testing.B) {
	benchScript(b, "for ((i = 0; i < 1000; i++)); do echo $i | read x; done")
}

func BenchmarkFunction(b *testing.B) {
	benchScript(b, `f() { local a=$1; [[ $a == 1* ]] && r=${a%0}; }; for ((i = 0; i < 10000; i++)); do f $i; done; true`)
}
