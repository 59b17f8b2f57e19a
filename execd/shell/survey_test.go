package shell

import (
	"testing"

	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

// What a script needs beyond the shell is found before it runs.
func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		source string
		args   []string
		want   string
	}{
		{args: []string{"grep", "-r", "TODO", "."}},
		{args: []string{"/usr/bin/grep", "x"}},
		{args: []string{"make"}, want: "make is not built in"},
		{args: []string{"./configure"}, want: "it runs the file ./configure"},
		{args: []string{"/usr/local/bin/go", "build"}, want: "go is not built in"},
		{args: []string{"cat", "/etc/os-release"}, want: "it names /etc, which is a container's"},
		{args: []string{"cat", "notes/etc/x"}},
		{args: []string{"sed", "-n", "/foo/p", "f"}},
		{args: []string{"sh", "-c", "cat; echo oops >&2; exit 7"}},
		{args: []string{"sh", "-ec", "ls | cc -x"}, want: "cc is not built in"},
		{args: []string{"bash", "-euo", "pipefail", "-c", "make"}, want: "it starts a shell"},
		{args: []string{"bash"}, want: "it starts a shell"},
		{args: []string{"sh", "script.sh"}, want: "it starts a shell"},
		{args: []string{"pwd"}, want: "pwd tells where the workspace is, which is elsewhere in a container"},
		{args: []string{"env", "-u", "C", "A=b", "make"}, want: "make is not built in"},
		{args: []string{"timeout", "-k", "1", "5", "sleep", "1"}},
		{args: []string{"timeout", "5", "cargo"}, want: "cargo is not built in"},
		{args: []string{"xargs", "-n1", "-I", "{}", "node", "{}"}, want: "node is not built in"},
		{args: []string{"xargs", "-0", "rm", "-f"}},
		{source: "find . -name '*.go' -exec gofmt -l {} +", want: "gofmt is not built in"},
		{source: "find . -name '*.go' -exec grep -l x {} +"},
		{source: "for f in *; do wc -l \"$f\"; done | sort -n > out; x=$(date); [[ -e out ]] && echo ok"},
		{source: "x=$(python3 -c 1)", want: "python3 is not built in"},
		{source: "cat <(python3 -c 1)", want: "python3 is not built in"},
		{source: "if true; then (f() { perl x; }; f); fi", want: "perl is not built in"},
		{source: "build() { echo b; }; build"},
		{source: "$CC -c x.c", want: "one of its commands is not known before it runs"},
		{source: `"$@"`, args: []string{"ls"}, want: "one of its commands is not known before it runs"},
		{source: "eval 'make x'", want: "make is not built in"},
		{source: "eval \"$x\"", want: "one of its commands is not known before it runs"},
		{source: "trap 'rm -f tmp' EXIT; echo x > tmp"},
		{source: "trap 'reboot' EXIT", want: "reboot is not built in"},
		{source: "trap - INT"},
		{source: ". ./env.sh", want: "it reads another script"},
		{source: "PATH=$PATH:x ls", want: "it sets PATH"},
		{source: "echo $PWD", want: "it asks for PWD, and the workspace is elsewhere in a container"},
		{source: "echo hi > /workspace/x", want: "it names /workspace, which is a container's"},
		{source: "tar -C/tmp -cf /tmp/x.tar . && rm --file=/proc/x", want: "it names /proc, which is a container's"},
		{source: "echo $(", want: "it is not understood: 1:6: reached EOF without matching `$(` with `)`"},
		{source: "awk '{ n += $1 } $2 == 1 || $3 { print n }' f"},
		{source: "awk '{ print | \"sort\" }' f", want: "its awk runs commands"},
		{source: "command -v ls; exec 3> f; exec ls"},
		{source: "command -v node || echo none", want: "node is not built in"},
		{source: "which -a go", want: "go is not built in"},
		{source: "type ls"},
		{source: "git -C d add . && git commit -qm x"},
		{source: "git clone x && git log --oneline -3 | head -5"},
		{source: "git rebase x", want: "git: rebase is not built in"},
		{source: "git $verb x", want: "one of its commands is not known before it runs"},
		{source: "git log --graph", want: "git: log: unknown option `graph'"},
		{source: "git -C d status --porcelain=v2", want: "git: status --porcelain=v2 is not built in"},
		{source: "git commit -m \"$message\" -- $files"},
		{source: "grep --colour=never -A3 x f | head -5 | tail +2 | fold -80"},
		{source: "grep --no-such x f", want: "grep: unrecognized option '--no-such'"},
		{source: "sed -n --zap p f", want: "sed: unrecognized option '--zap'"},
		{source: "sort -k2,2n -t: f | tar czf x.tgz -C d . ; chmod -x,u+r f; chmod -R --frob f", want: "chmod: unrecognized option '--frob'"},
		{source: "find -L . -maxdepth 2 -name '*.go' ! -newer x -exec grep -q --line-buffered y {} \\; -o -print"},
		{source: "find . -used 3", want: "find: unknown predicate `-used'"},
		{source: "jq -r --arg a b '.x' f; jq --zap . f", want: "jq: unrecognized option '--zap'"},
		{source: "ls --frobnicate", want: "ls: unrecognized option '--frobnicate'"},
		{source: "ls() { :; }; ls --frobnicate"},
		{source: "ls $options"},
		{source: "alias ll='ls -l'; ll", want: "alias changes which commands there are"},
		{source: "cd src && ls -la && cat a.txt 2>/dev/null"},
	} {
		if got := Missing(corpusTable, toolbox.Grammar(), tt.source, tt.args); got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.source, tt.args, got, tt.want)
		}
	}
}
