package toolbox_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// prompt holds cancelling to what is promised, 50 ms, rather than to what no load can break. It is for a machine that does
// nothing else, and takes six minutes: go test -run TestPrompt -prompt.
var prompt = flag.Bool("prompt", false, "hold the median of cancelling a script to 50 ms")

const (
	promised = 50 * time.Millisecond
	ample    = 10 * time.Second // on a machine with any load, and with the race detector
)

// work are scripts that would run for minutes or for ever, by what they are in the middle of. "big" is a file of text, "long"
// one long line, "tree" a tree of some thousand files.
var work = []struct{ of, script string }{
	{"loop", "while :; do :; done"},
	{"until loop", "until false; do true; done"},
	{"arithmetic loop", "for ((;;)); do ((i++, i*i, i%7)); done"},
	{"arithmetic while", "while ((1)); do x=$((x + 1)); done"},
	{"let", "while let 1; do :; done"},
	{"recursion of functions", "f() { local x=$1; [ $1 -lt 900 ] && f $(($1 + 1)); }; while :; do f 0; done"},
	{"substitutions in each other", "while :; do x=$(echo $(echo $(echo $(echo $(echo a))))); done"},
	{"subshells", "while :; do (:); done"},
	{"pipelines", "while :; do echo a | cat | cat > /dev/null; done"},
	{"background jobs", "while :; do : & wait; done"},
	{"case", `while :; do case $((i++)) in *[!0-9]*) break ;; esac; done`},
	{"trap", "trap : DEBUG; while :; do :; done"},
	{"here-documents", "while :; do cat <<< a > /dev/null; done"},
	{"printf", "while :; do printf '%s %d %x\\n' {1..1000} > /dev/null; done"},
	{"printf of a wide field", "while :; do printf '%1000000s%1000000d' a 1 > /dev/null; done"},
	{"brace expansion", "while :; do : {1..1000}{1..1000}; done"},
	{"sequence expansion", "while :; do : {1..1000000}; done"},
	{"pathname expansion", "while :; do : tree/*/* tree/*/*[0-9]; done"},
	{"globstar", "shopt -s globstar; while :; do : **/*; done"},
	{"extended pattern", "shopt -s extglob; x=$(head -c 100000 long); [[ $x == *!(a)*!(b)*!(c) ]]"},
	{"extended pattern that repeats", "shopt -s extglob; x=$(cat long); while :; do [[ $x == +(a|aa|x)b ]]; done"},
	{"pattern", `x=$(cat long); while :; do [[ $x == *a*a*a*b*c ]]; done`},
	{"removal of a suffix", "x=$(cat long); : ${x%%*a*b*c}"},
	{"replacement", "x=$(cat long); while :; do y=${x//a/bb}; done"},
	{"replacement by a pattern", "x=$(cat long); y=${x//a*b/}"},
	{"letter case", "x=$(cat long); while :; do y=${x^^}; done"},
	{"regular expression", `x=$(cat long); while :; do [[ $x =~ (a*)*b ]]; done`},
	{"back-reference", `x=$(head -c 50000 long)cdb; r='(a*)(a*)(a*)\3\2\1b'; [[ $x =~ $r ]]`},
	{"word splitting", "x=$(cat big); while :; do set -- $x; done"},
	{"arrays", "while :; do a=({1..10000}); b=(\"${a[@]}\"); done"},
	{"mapfile", "while :; do mapfile a < big; done"},
	{"mapfile of what never ends", "mapfile a < <(yes)"},
	{"read", "while read -r x; do :; done < <(yes)"},
	{"read from nobody", "mkfifo p; read x < p"},
	{"read with a timeout", "read -t 1000 x < <(sleep 1000)"},
	{"select", "select x in a b; do :; done < <(yes)"},
	{"write to nobody", "mkfifo p; echo x > p"},
	{"wait", "sleep 1000 & wait"},
	{"wait -n", "sleep 1000 & sleep 1000 & wait -n"},
	{"coproc", "coproc cat; read x <&${COPROC[0]}"},
	{"process substitution", "cat <(yes) > /dev/null"},
	{"eval", "while :; do eval 'x=1; y=2'; done"},
	{"source", "echo : > s; while :; do . ./s; done"},
	{"parse of a long script", "x=$(yes 'echo $((1 + 2)) \"$(echo a)\" | cat > /dev/null' | head -n 20000); while :; do eval \"false && { $x\n}\"; done"},

	{"sleep", "sleep 1000"},
	{"timeout", "timeout 1000 yes > /dev/null"},
	{"yes", "yes > /dev/null"},
	{"seq", "seq 1 1000000000000 > /dev/null"},
	{"seq of fractions", "seq 0 0.001 100000000000 > /dev/null"},
	{"date", "while date; do :; done > /dev/null"},
	{"date in the past", "while date -d '3 months ago' +%c; do :; done > /dev/null"},
	{"expr", `x=$(head -c 20000 long)dc; expr "$x" : '\(a*\)\(a*\)\(a*\)\3\2\1b*c'`},
	{"factor", "seq 1000000000000000000 inf | factor > /dev/null"},
	{"factor of a large number", "factor 340282366920938460843936948965011886881"},
	{"test", "while [ 1 -eq 1 -a a != b ]; do :; done"},
	{"env", "while env true; do :; done"},
	{"envsubst", "yes '$HOME' | envsubst > /dev/null"},

	{"cat", "cat /dev/zero > /dev/null"},
	{"cat -A", "cat -A /dev/urandom > /dev/null"},
	{"head", "head -c 1000000000000 /dev/zero > /dev/null"},
	{"head of lines", "yes | head -n 100000000000 > /dev/null"},
	{"tail", "yes | tail -n 3"},
	{"tail of bytes", "yes | tail -c 1000"},
	{"tail -f", "tail -f big > /dev/null"},
	{"tac", "yes | tac"},
	{"rev", "yes | rev > /dev/null"},
	{"nl", "yes | nl > /dev/null"},
	{"wc", "wc /dev/zero"},
	{"wc -l", "yes | wc -l"},
	{"wc -L", "yes | wc -mL"},
	{"cut", "yes a:b:c | cut -d: -f2 > /dev/null"},
	{"cut of one line", "cut -c5 /dev/zero > /dev/null"},
	{"paste", "paste <(yes) <(yes) > /dev/null"},
	{"tr", "tr '\\0' a < /dev/zero > /dev/null"},
	{"tr -s", "tr -s '\\0' < /dev/zero"},
	{"fold", "fold -w 10 < /dev/zero > /dev/null"},
	{"expand", "yes $'\\t' | expand > /dev/null"},
	{"column", "yes a b | column -t"},
	{"comm", "comm <(yes) <(yes) > /dev/null"},
	{"join", "join <(yes a) <(yes a) > /dev/null"},
	{"uniq", "yes | uniq -c"},
	{"shuf", "yes | shuf"},
	{"shuf of a range", "shuf -r -i 1-1000 > /dev/null"},
	{"split", "yes | split -l 1000000000 -"},
	{"tee", "yes | tee /dev/null > /dev/null"},
	{"sort", "yes | sort"},
	{"sort of lines", "while :; do sort big big big big > /dev/null; done"},
	{"sort of numbers", "seq 1000000000 | sort -rn"},
	{"sort of versions", "while :; do sort -V big big big > /dev/null; done"},
	{"sort of long lines", "for i in {1..3000}; do cat long; done | sort > /dev/null"},
	{"sort in no order", "while :; do sort -R big big > /dev/null; done"},

	{"grep", "grep x /dev/zero"},
	{"grep -c", "yes | grep -c y"},
	{"grep of a back-reference", `{ head -c 50000 long; echo cdb; } | grep -E '(a*)(a*)(a*)\3\2\1b'`},
	{"grep -o", "while :; do grep -o 'a\\|a.*b' long > /dev/null; done"},
	{"grep -P", `{ head -c 50000 long; echo cdb; } | grep -P '^(?=(a+)+c)(a+)+b'`},
	{"grep -f", "head -n 300 big > few; while :; do grep -F -f few big > /dev/null; done"},
	{"grep -r", "while :; do grep -r nothing tree; done"},
	{"rg", "while :; do rg nothing; done"},
	{"sed", "yes | sed s/y/z/ > /dev/null"},
	{"sed loop", "sed ':a;s/x/x/;ta' <<< x"},
	{"sed of one line", "sed 's/a\\|a.*b/c/g' long"},
	{"sed back-reference", `{ head -c 50000 long; echo cdb; } | sed -E 's/(a*)(a*)(a*)\3\2\1db*e?b//'`},
	{"sed that grows", "sed ':a;s/a/aa/g;ba' <<< a"},
	{"awk", "yes | awk '{ n++ }'"},
	{"awk loop", "awk 'BEGIN { while (1) i++ }'"},
	{"awk function", "awk 'function f(n) { return n < 2 ? 1 : f(n - 1) + f(n - 2) } BEGIN { f(100) }'"},
	{"awk array", "awk 'BEGIN { while (1) a[i++ % 1000] = i }'"},
	{"awk sort", "awk 'BEGIN { for (;;) { for (i = 0; i < 100000; i++) a[i] = -i; asort(a) } }'"},
	{"awk gsub", "awk '{ while (1) gsub(/a|a.*b/, \"a\") }' long"},
	{"awk match", "awk '{ match($0, /(a*)*b$/) }; 1' long long long > /dev/null; yes | awk '{ split($0, a, \"\") }'"},
	{"awk sprintf", "awk 'BEGIN { while (1) x = sprintf(\"%1000000d\", 1) }'"},
	{"awk pipe", "awk 'BEGIN { while (1) { \"echo a\" | getline x; close(\"echo a\") } }'"},
	{"awk getline", "awk 'BEGIN { while ((\"yes\" | getline x) > 0) n++ }'"},
	{"find", "while :; do find tree -name '*a*b*c*' -o -size +1M; done"},
	{"find -regex", "while :; do find tree -regex '.*\\(a*\\)*b'; done"},
	{"find -exec", "while :; do find tree -type f -exec true {} \\;; done"},
	{"xargs", "yes | xargs echo > /dev/null"},
	{"xargs of one each", "yes | xargs -n 1 echo > /dev/null"},
	{"xargs -P", "yes | xargs -P 4 -n 1 true"},

	{"ls", "while :; do ls -lR tree > /dev/null; done"},
	{"tree", "while :; do tree tree > /dev/null; done"},
	{"du", "while :; do du -a tree > /dev/null; done"},
	{"stat", "while :; do stat tree/*/* > /dev/null; done"},
	{"cp", "cp /dev/zero zero"},
	{"cp -r", "while :; do cp -r tree copy; rm -r copy; done"},
	{"chmod", "while :; do chmod -R u+w tree; done"},
	{"touch", "while :; do touch tree/*/*; done"},
	{"diff", "while :; do diff <(shuf big) <(shuf big) > /dev/null; done"},
	{"diff of what never ends", "diff <(yes) <(yes)"},
	{"diff -r", "cp -r tree copy; while :; do diff -r tree copy; done"},
	{"cmp", "cmp /dev/zero /dev/zero"},
	{"patch", "diff -u <(shuf big) big > p; while :; do patch -s -o /dev/null big p; done"},

	{"tar", "tar c /dev/zero big tree > /dev/null; while :; do tar c tree > /dev/null; done"},
	{"tar of what is none", "tar x < /dev/zero; yes | tar x; yes > /dev/null"},
	{"tar z", "while :; do tar cz big tree | tar tz > /dev/null; done"},
	{"tar J", "while :; do tar cJ big tree | tar tJ > /dev/null; done"},
	{"gzip", "gzip < /dev/zero > /dev/null"},
	{"gzip -9", "gzip -9 < /dev/urandom > /dev/null"},
	{"gunzip", "gzip < /dev/zero | gunzip > /dev/null"},
	{"zstd", "zstd < /dev/zero > /dev/null"},
	{"zstd -19", "zstd -19 < /dev/urandom > /dev/null"},
	{"xz", "xz < /dev/zero > /dev/null"},
	{"xz -9", "xz -9 < /dev/urandom > /dev/null"},
	{"unxz", "xz < /dev/zero | unxz > /dev/null"},
	{"zip", "while :; do zip -qr x.zip big tree; done"},

	{"base64", "base64 /dev/zero > /dev/null"},
	{"base64 -d", "base64 -w 0 /dev/zero | base64 -d > /dev/null"},
	{"xxd", "xxd /dev/zero > /dev/null"},
	{"od", "od -v /dev/urandom > /dev/null"},
	{"hexdump", "hexdump -v /dev/urandom > /dev/null"},
	{"strings", "strings /dev/urandom > /dev/null"},
	{"sha256sum", "sha256sum /dev/zero"},
	{"md5sum", "md5sum /dev/zero"},

	{"bc loop", "echo 'while (1) x = x + 1' | bc"},
	{"bc power", "echo 'for (i = 0; 1; i++) x = 3^60000 % (2^30000 + i)' | bc"},
	{"bc power of a fraction", "echo 'while (1) x = 0.1^100000000' | bc"},
	{"bc digits", "echo 'scale = 9000; while (1) x = sqrt(2) / 3' | bc"},
	{"bc -l", "echo 'scale = 300; while (1) x = a(1)' | bc -l"},
	{"bc of a long number", "{ yes 7 | head -n 60000 | tr -d '\\n'; echo; } > n; while :; do bc < n > /dev/null; done"},
	{"dc", "dc -e '[lx x] sx lx x'"},
	{"dc power", "dc -e '[3 60000 ^ 2 30000 ^ % s. lx x] sx lx x'"},
	{"jq loop", "jq -n 'def f: f; f'"},
	{"jq range", "jq -n 'last(range(1e12))'"},
	{"jq array", "jq -n '[range(infinite)] | length'"},
	{"jq sort", "jq -n 'def f: ([range(300000)] | map(-.) | sort | length) | f; f'"},
	{"jq group_by", "jq -n 'def f: ([range(100000)] | group_by(. % 7) | length) | f; f'"},
	{"jq comparison", "jq -n 'reduce range(60) as $i (1; [., .]) as $x | reduce range(60) as $i (1; [., .]) as $y | $x == $y'"},
	{"jq printing", "jq -n 'reduce range(60) as $i (1; [., .])' > /dev/null"},
	{"jq tojson", "jq -n 'reduce range(20) as $i (1; [., .]) | def f: (tojson | length) | f; f'"},
	{"jq test", `jq -n '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | def f: test("(a*)*b") | "a" | f; f'`},
	{"jq of much", "yes '{\"a\": [1, 2, 3]}' | jq -c .a > /dev/null"},
	{"jq -s", "yes 1 | jq -s length"},
	{"yq", "yes 'a: 1' | yq .a"},
	{"sqlite3", "sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n'"},
	{"sqlite3 sort", "sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n limit 100000000) select i from n order by -i'"},
	{"sqlite3 output", "sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n) select i from n' > /dev/null"},
	{"git", "git init -q; git add tree; while :; do git status > /dev/null; done"},
}

// newWorkplace makes the files that the work is done on.
var newWorkplace = func() func(t testing.TB) treepath.FS {
	var once sync.Once
	var made []struct{ name, text string }
	return func(t testing.TB) treepath.FS {
		once.Do(func() {
			var big strings.Builder
			for i := range 20_000 {
				fmt.Fprintf(&big, "line %d of %d: some words, v%d.%d\n", i*7919%20_000, i, i%13, i%97)
			}
			made = append(made, struct{ name, text string }{"big", big.String()})
			made = append(made, struct{ name, text string }{"long", strings.Repeat("a", 200_000) + "\n"})
			for i := range 2000 {
				made = append(made, struct{ name, text string }{fmt.Sprintf("tree/d%d/file%d", i/100, i), fmt.Sprintf("text of %d\n", i)})
			}
		})
		fs := treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022}
		for _, f := range made {
			if i := strings.LastIndexByte(f.name, '/'); i > 0 {
				if err := fs.MkdirAll(t.Context(), f.name[:i], 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := fs.WriteFile(t.Context(), f.name, []byte(f.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return fs
	}
}()

// cancelled runs a script, ends its context after a while, and returns how long it took to return from there.
func cancelled(t testing.TB, fs treepath.FS, script string, after time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := shell.Run(ctx, shell.Config{
			Tree: fs.Tree, Stdout: io.Discard, Stderr: io.Discard, Commands: table, Env: []string{"PATH=/usr/bin", "HOME=/"},
			Linger: time.Millisecond,
		}, script)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, command.ErrMemory) { // a bound that came first is as good
			t.Errorf("it ended by itself: %v", err)
		}
		return 0
	case <-time.After(after):
	}
	at := time.Now()
	cancel()
	err := <-ended
	took := time.Since(at)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, command.ErrMemory) {
		t.Errorf("error %v", err)
	}
	return took
}

// A script ends soon after its context, whatever it is doing.
func TestPrompt(t *testing.T) {
	rounds, limit := 1, ample
	if *prompt {
		rounds, limit = 5, promised
	}
	for _, w := range work {
		t.Run(w.of, func(t *testing.T) {
			var times []time.Duration
			for i := range rounds {
				// By then all of them are amid their work; some need that long to read what they are to work on.
				after := 40*time.Millisecond + time.Duration(i)*100*time.Millisecond
				times = append(times, cancelled(t, newWorkplace(t), w.script, after))
			}
			slices.Sort(times)
			if median := times[len(times)/2]; median > limit {
				t.Errorf("it ended after %v", times)
			} else if *prompt {
				t.Logf("%v, at most %v", median, times[len(times)-1])
			}
		})
	}
}
