package container

import (
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// limited runs a script under limits, and says which of them are kept by cgroups here.
func limited(t *testing.T, l execd.Limits, script string) (execd.Exit, string, *cgroup) {
	t.Helper()
	d := newDesk(t, nil)
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", script}, Limits: l})
	group := p.(*process).cell.group
	return p.Wait(), out.text(execd.Stdout) + out.text(execd.Stderr), group
}

// A program that uses more memory than it may is ended, and the result says why where the machine tells.
func TestMemoryLimit(t *testing.T) {
	const script = `exec perl -e 'my @x; push @x, "a" x (1<<24) while 1'`
	x, out, group := limited(t, execd.Limits{Memory: 200 << 20}, script)
	if x.OOM != group.has("memory") || x.Code == 0 {
		t.Errorf("%+v, %q; the group limits memory: %t", x, out, group.has("memory"))
	}
}

// A fork bomb is contained, and what it is in ends.
func TestPidsLimit(t *testing.T) {
	x, out, group := limited(t, execd.Limits{Pids: 40}, `i=0; while [ $i -lt 200 ]; do sleep 77777 > /dev/null 2>&1 & i=$((i+1)); done; echo all`)
	if group.has("pids") && (x.Code == 0 || out == "all\n") {
		t.Errorf("%+v, %q", x, out)
	}
	if n := processes(t, "sleep\x0077777\x00"); n != 0 {
		t.Errorf("%d are left", n)
	}
}
