package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// memoryOf sums what this process and its descendants have of memory, in bytes, where they share it each its part of that; and what
// this process has alone.
func memoryOf(t *testing.T) (all, own uint64) {
	t.Helper()
	parents := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parents[pid], _ = strconv.Atoi(strings.Fields(rest)[1])
	}
	for pid := range parents {
		top := pid
		for top > 1 && top != os.Getpid() {
			top = parents[top]
		}
		if top != os.Getpid() {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), "\nPss:")
		kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all += kib << 10
		if pid == os.Getpid() {
			own = kib << 10
		}
	}
	return all, own
}

// Two hundred run at once, all of them at the same moment, and what comes beyond the limit is refused, with a code and before
// anything of it runs; the daemon needs little memory for each.
func TestManyAtOnce(t *testing.T) {
	const many, beyond = 200, 20
	d := newDesk(t, nil)
	r := newRegistryOf(t, d, t.TempDir(), many)
	_, before := memoryOf(t)
	execs := make([]*execd.Exec, many)
	var group sync.WaitGroup
	for i := range execs {
		group.Go(func() {
			e, err := r.Start(t.Context(), execd.Spec{Workspace: "ws", Args: []string{"sh", "-c", "echo begun; cat"}, Open: true})
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			reader := e.Attach(0, false)
			defer reader.Close()
			if ev, err := reader.Next(t.Context()); err != nil || string(ev.Data) != "begun\n" {
				t.Errorf("%d: %q, %v", i, ev.Data, err)
			}
			execs[i] = e
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for i := range beyond {
		_, err := r.Start(t.Context(), execd.Spec{ID: "beyond", Workspace: "ws", Args: []string{"touch", "beyond"}})
		if !errors.Is(err, vfs.ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint(many)) {
			t.Errorf("beyond the limit, %d: %v", i, err)
		}
	}
	all, own := memoryOf(t)
	t.Logf("%d run: %d KiB of memory, %d of them of this process, which had %d", many, all>>10, own>>10, before>>10)
	const each = 1 << 20 // a fifth of it and less without the race detector
	if most := before + many*each; own > most {
		t.Errorf("this process has %d bytes of memory, more than %d", own, most)
	}
	for i, e := range execs {
		group.Go(func() {
			if err := errors.Join(e.Input(t.Context(), fmt.Append(nil, i)), e.CloseInput()); err != nil {
				t.Error(err)
			}
			result, err := e.Wait(t.Context())
			if err != nil || result.Code != 0 || result.Output != uint64(len("begun\n")+len(fmt.Sprint(i))) {
				t.Errorf("%d: %+v, %v", i, result, err)
			}
		})
	}
	group.Wait()
	if _, err := os.Stat(filepath.Join(d.dir, "ws", "beyond")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was refused has run: %v", err)
	}
}
