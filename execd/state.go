package execd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// State is where an exec is in its life.
type State string

// The states.
const (
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateExited   State = "exited"
	StateLost     State = "lost"
)

// Files of an exec's directory. There are two, because ext4 writes a file that is renamed over another to the disk, for which an
// exec would wait at its end.
const (
	stateName = "state.json" // a record, as the exec begins
	endName   = "end.json"   // the one that counts once it is there
)

// The directory of the next exec, with the files that it needs to begin: to make one of the three takes up to a millisecond, and to
// rename one a tenth of that. No exec has such an id, and what is left by a daemon that died is taken for an exec that never
// began.
const (
	spareName  = ".spare"
	makingName = ".making" // while it is being made
)

// prepareDir makes the spare directory if there is none. An exec that finds none makes its own.
func prepareDir(execs string) {
	spare, making := filepath.Join(execs, spareName), filepath.Join(execs, makingName)
	if _, err := os.Lstat(spare); err == nil || os.Mkdir(making, 0o700) != nil {
		return // another exec makes it
	}
	err := errors.Join(os.WriteFile(unnamed(making, stateName), nil, 0o600), os.WriteFile(segment{first: 1}.path(making), nil, 0o600))
	if err == nil {
		err = os.Rename(making, spare)
	}
	if err != nil {
		_ = os.RemoveAll(making)
	}
}

// makeDir makes the directory of an exec.
func makeDir(dir string) error {
	if os.Rename(filepath.Join(filepath.Dir(dir), spareName), dir) == nil {
		return nil
	}
	return os.MkdirAll(dir, 0o700)
}

// unnamed is the path of a file until it is whole.
func unnamed(dir, name string) string { return filepath.Join(dir, "."+name) }

// record is the state of an exec on disk.
type record struct {
	Spec    Spec      `json:"spec"`   // without what may be secret
	Digest  []byte    `json:"digest"` // of the whole spec
	State   State     `json:"state"`
	Created time.Time `json:"created"`
	Before  vfs.Rev   `json:"before"`
	Last    uint64    `json:"last"` // number of the last event, once it has ended
	Offset  uint64    `json:"offset"`
	Result  *Result   `json:"result,omitempty"`
}

func writeState(dir string, r record, seal seal) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	name := stateName
	if r.Result != nil {
		name = endName
	}
	// No fsync: this is to survive the daemon, and an exec must not wait for a disk.
	if err := os.WriteFile(unnamed(dir, name), seal.hide(b), 0o600); err != nil {
		return err
	}
	return os.Rename(unnamed(dir, name), filepath.Join(dir, name))
}

func readState(dir string, seal seal) (record, error) {
	var r record
	path := filepath.Join(dir, endName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(dir, stateName)
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return r, err
	}
	if b, err = seal.show(b); err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, corrupt(path, err)
	}
	return r, nil
}

// openLog returns the log of an exec that has ended.
func openLog(dir string, r record, seal seal) (*Log, error) {
	l := newLog(dir, DefaultLogSize, seal)
	l.next, l.offset, l.ended, l.free = r.Last+1, r.Offset, true, true
	var err error
	l.segs, err = listSegments(dir)
	return l, err
}

// resumeLog returns the log of an exec whose daemon died, and the result when that is in it already. What was written
// in part is cut off.
func resumeLog(dir string, size int64, seal seal) (*Log, *Result, error) {
	l := newLog(dir, size, seal)
	var err error
	if l.segs, err = listSegments(dir); err != nil || len(l.segs) == 0 {
		return l, nil, err
	}
	last := &l.segs[len(l.segs)-1]
	b, err := os.ReadFile(last.path(dir))
	if err != nil {
		return nil, nil, err
	}
	l.next = last.first
	var result *Result
	whole := 0
	for {
		n, err := frameLen(b[whole:])
		if err != nil || n == 0 || whole+n > len(b) {
			break
		}
		frame, err := seal.showFrame(b[whole : whole+n])
		if err != nil {
			break
		}
		e, err := parseFrame(frame)
		if err != nil {
			break
		}
		whole += n
		l.next, l.offset = e.Seq+1, e.end()
		if e.Stream == Exited {
			result = &Result{}
			if err := json.Unmarshal(e.Data, result); err != nil {
				return nil, nil, corrupt(last.path(dir), err)
			}
		}
	}
	last.size = int64(whole)
	if err := os.Truncate(last.path(dir), last.size); err != nil {
		return nil, nil, err
	}
	l.file, err = os.OpenFile(last.path(dir), os.O_WRONLY, 0)
	return l, result, err
}

// listSegments finds the segments of a log, in order.
func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		if !ok {
			continue
		}
		first, err := strconv.ParseUint(name, 16, 64)
		if err != nil {
			return nil, corrupt(filepath.Join(dir, e.Name()), err)
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, segment{first, info.Size()})
	}
	slices.SortFunc(list, func(a, b segment) int { return int(int64(a.first - b.first)) })
	return list, nil
}

// recover takes an exec from its directory after another daemon, and ends it when it was running then: nil for one that
// never began.
func (r *Registry) recover(id string) (*Exec, error) {
	dir := filepath.Join(r.config.Dir, id)
	seal, err := r.seal(id)
	if err != nil {
		return nil, err
	}
	rec, err := readState(dir, seal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.RemoveAll(dir)
	}
	if err != nil {
		return nil, err
	}
	e := &Exec{
		registry: r, dir: dir, spec: rec.Spec, digest: [32]byte(append(rec.Digest, make([]byte, 32)...)), created: rec.Created,
		ready: closedChan, done: closedChan, state: rec.State, result: rec.Result,
	}
	if e.result != nil {
		e.log, err = openLog(dir, rec, seal)
		return e, err
	}
	return e, e.lose(rec, seal)
}

// lose ends the exec of a daemon that died.
func (e *Exec) lose(rec record, seal seal) (err error) {
	if e.log, e.result, err = resumeLog(e.dir, e.registry.config.LogSize, seal); err != nil {
		return err
	}
	if e.result != nil { // it died between writing the last event and the state
		e.state = StateExited
		if err := e.log.finish(); err != nil {
			return err
		}
		return e.write()
	}
	_, offset, _ := e.log.sizes()
	e.state = StateLost
	e.before = rec.Before
	e.result = &Result{
		Status: StatusLost, Code: 1, Reason: "the daemon died while it was running", Before: rec.Before,
		Started: rec.Created, Ended: time.Now(), Output: offset,
	}
	b, err := json.Marshal(e.result)
	if err != nil {
		return err
	}
	if err := e.log.end(b); err != nil {
		return fmt.Errorf("end the log of exec %s: %w", e.spec.ID, err)
	}
	return e.write()
}
