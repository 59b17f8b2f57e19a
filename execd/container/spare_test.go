package container

import (
	"testing"

	"github.com/carrelfs/carrel/execd"
)

// The first exec of a workspace has the container that was made for nobody, and sees its own workspace in it and no other.
func TestSpare(t *testing.T) {
	d := newDesk(t, nil)
	d.sh(t, "echo one > secret")
	spare := d.awaitSpare()
	p, out := d.start(t, execd.Spec{Workspace: "other", Args: []string{"sh", "-c", "pwd; ls; echo two > mine; exit 3"}})
	if x := p.Wait(); x.Code != 3 || out.text(execd.Stdout) != "/workspace\n" || p.(*process).cell != spare {
		t.Errorf("%+v, %q, %q", x, out.text(execd.Stdout), out.text(execd.Stderr))
	}
	if x, got := d.sh(t, "ls"); x.Code != 0 || got != "secret\n" {
		t.Errorf("the workspace from before: %+v, %q", x, got)
	}
	// What comes later in it sees the workspace too.
	p, out = d.start(t, execd.Spec{Workspace: "other", Args: []string{"cat", "mine"}})
	if p.Wait(); out.text(execd.Stdout) != "two\n" {
		t.Errorf("%q, %q", out.text(execd.Stdout), out.text(execd.Stderr))
	}
}

// A spare that has died while it was one, or is of another kind, is not used.
func TestSpareUnfit(t *testing.T) {
	d := newDesk(t, nil)
	d.sh(t, "true")
	spare := d.awaitSpare()
	if err := spare.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p, out := d.start(t, execd.Spec{Workspace: "other", Args: []string{"echo", "runs"}})
	if x := p.Wait(); x.Code != 0 || out.text(execd.Stdout) != "runs\n" {
		t.Errorf("%+v, %q", x, out.text(execd.Stderr))
	}
	spare = d.awaitSpare()
	p, _ = d.start(t, execd.Spec{Workspace: "third", Args: []string{"true"}, Limits: execd.Limits{Pids: 50}})
	if x := p.Wait(); x.Code != 0 || p.(*process).cell == spare {
		t.Errorf("%+v", x)
	}
}

// An exec whose runner has died while nobody used it gets another.
func TestRunnerDies(t *testing.T) {
	d := newDesk(t, nil)
	p, _ := d.start(t, execd.Spec{Args: []string{"true"}})
	p.Wait()
	c := p.(*process).cell
	c.prepare()
	c.asking.Lock()
	c.next.kill()
	c.next.waitDead()
	c.asking.Unlock()
	if x, out := d.sh(t, "echo runs"); x.Code != 0 || out != "runs\n" {
		t.Errorf("%+v, %q", x, out)
	}
}
