package toolbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bombs never end, or take all there is, when nothing bounds them.
var bombs = []string{
	"yes | sort", "yes | tac", "yes | tr -d '\\n' | cut -c1", "cat /dev/zero | grep x", "yes | sed ':a;N;ba'", "sed ':a;ba' <<< x",
	"sed ':a;s/^/x/;ba' <<< x", "awk 'BEGIN { while (1) i++ }'", "awk 'BEGIN { s = \"x\"; while (1) s = s s }'",
	"awk 'BEGIN { while (1) a[i++] }'", "awk 'BEGIN { while (1) print }' > /dev/null", "jq -n 'def f: f; f'",
	"jq -n '[range(infinite)]'", "jq -n 'last(repeat(1))'", "yes | xargs -n1 echo", "yes '[1]' | jq . > /dev/null", "yes 1 | paste -sd+ | bc",
	"echo 'while (1) x = 1' | bc", "echo '9^9^9^9' | bc; yes > /dev/null", "dc -e '[lx x] sx lx x'", "seq 1 inf | tail -n 1", "yes | shuf",
	"printf '%s' a{1..200} | grep -E '(a|a?)+\\1b'; yes >/dev/null", "tail -f /dev/null & yes > /dev/null", "sleep 1000", "seq inf | factor > /dev/null",
	"yes | tee /dev/null > /dev/null", "cat /dev/zero | base64 -w0 | sed s/A/B/ > /dev/null", "yes x | tr -d '\\n' | grep -c y", "cat /dev/zero | tar x; yes > /dev/null",
}

// Every bomb ends at its bound: of time here, of work or memory where that comes first.
func TestBombs(t *testing.T) {
	for _, bomb := range bombs {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := shell.Run(t.Context(), shell.Config{
				Tree: vfstest.NewTree(), Stdout: io.Discard, Stderr: io.Discard, Commands: table,
				Env:    []string{"PATH=/usr/bin"},
				Limits: shell.Limits{Time: 100 * time.Millisecond, Memory: 64 << 20},
			}, bomb)
			if err == nil {
				t.Errorf("%s: ended by itself", bomb)
			}
			if took := time.Since(start); took > time.Minute { // what nothing bounds takes for ever
				t.Errorf("%s: took %v", bomb, took)
			}
		})
	}
}

// What doubles and doubles ends by itself, with an error of its own, before it is large.
func TestTooLarge(t *testing.T) {
	for _, script := range []string{
		`jq -n '"aaaaaaaa" | until(false; . + .)'`, `jq -n '"aaaaaaaa" | until(false; . * 1000)'`, `jq -n '"a" | until(false; "\(.)\(.)")'`,
		`jq -n '{a: "x"} | until(false; .a += .a)'`,
		`jq -n '{a: "x"} | until(false; .a *= 100)'`, `jq -n '[1] | until(false; . + .)'`, `jq -n '[range(100000) | "x" * 1000] | add'`,
		`jq -n '[range(100000) | "x"] | join("x" * 1000)'`, `jq -n 'reduce range(60) as $i ("x"; [., .]) | tojson'`,
		`jq -n '"x" * 2000000000'`, `yq -n '"aaaaaaaa" | until(false; . + .)'`,
		"printf 'select 1;\nselect zeroblob(1e9);' | sqlite3", "sqlite3 :memory: \"select replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000000)))\"",
		"echo '9^9^9^9' | bc 2>&1 | grep .; false", "xz -dc < /dev/zero",
	} {
		var errs bytes.Buffer
		status, err := shell.Run(t.Context(), shell.Config{
			Tree: vfstest.NewTree(), Stdout: io.Discard, Stderr: &errs, Commands: table, Env: []string{"PATH=/usr/bin"},
			Limits: shell.Limits{Time: time.Minute, Memory: 512 << 20},
		}, script)
		if err != nil || status == 0 {
			t.Errorf("%s: status %d, %v: %.200s", script, status, err, errs.String())
		}
	}
}

// A command in the middle of its work ends with its context.
func TestCancel(t *testing.T) {
	f := treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022}
	if err := f.WriteFile(t.Context(), "big", []byte(strings.Repeat("some words on a line\n", 200_000)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"sort -k2 big big big", "grep -E '(.*)x(.*)y\\1' big", "awk '{ gsub(/o/, \"0\") } 1' big big big", "wc -L big big big", "diff big <(tac big)"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := shell.Run(ctx, shell.Config{Tree: f.Tree, Stdout: io.Discard, Stderr: io.Discard, Commands: table,
			Env: []string{"PATH=/usr/bin"}, Linger: time.Millisecond}, script)
		cancel()
		if err == nil {
			t.Logf("%s: was done before", script)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", script, err)
		}
	}
}
