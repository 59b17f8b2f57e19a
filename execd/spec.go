package execd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Spec says what is to be run. The zero value of a field that has no meaning for a backend is left; a backend refuses any
// other with ErrNotSupported.
type Spec struct {
	ID        string // 1 to MaxID letters, digits, '-', '_' and '.', not first; made when empty
	Workspace string
	Backend   string // a name in Config.Backends, or Auto

	// Args is the command, or the parameters of Source; for js without a Source, the file of the module and its parameters.
	Args   []string
	Source string // the text of a program, for shell and js

	Dir     string          // working directory in the workspace, absolute; "/" when empty
	Env     []string        // NAME=value; nothing else of the caller's environment is passed on
	Stdin   []byte          // standard input, or its beginning
	Open    bool            // standard input stays open after Stdin, for Input, until CloseInput
	Input   json.RawMessage // structured input, for js
	Timeout time.Duration   // after which the exec is killed; zero for none
	TTY     *Size           // run in a terminal of that size; nil for none
	Limits  Limits
	Net     string // "" for loopback alone, "host" for the machine's network
	// Runtime is what makes the container: "" for the backend itself, or the name of an OCI runtime of the machine.
	Runtime string `json:",omitempty"` // what an exec of before was to do is the same as before
	Root    string // what of the machine has the root filesystem of a container: a directory, or an image; "" for the backend's own
}

// Auto is the backend of a spec that leaves the choice to Config.Choose.
const Auto = "auto"

// Privileged reports whether a spec asks for what only those may have who may do everything on the machine's behalf.
func (s Spec) Privileged() bool { return s.Net != "" || s.Root != "" }

// Size is that of a terminal, in characters.
type Size struct {
	Rows, Cols uint16
}

// Limits are what an exec may use of the machine. Zero is the backend's default.
type Limits struct {
	Memory uint64 // bytes
	CPU    uint32 // thousandths of a processor
	Pids   uint32
}

// check refuses what no backend could mean: ErrInvalid, ErrTooBig.
func (s *Spec) check() error {
	switch {
	case s.ID != "" && !validID(s.ID):
		return fmt.Errorf("exec id %q: %w", s.ID, vfs.ErrInvalid)
	case s.Workspace == "":
		return fmt.Errorf("exec without a workspace: %w", vfs.ErrInvalid)
	case len(s.Args) == 0 && s.Source == "":
		return fmt.Errorf("exec of nothing: %w", vfs.ErrInvalid)
	case s.Root != "" && !strings.HasPrefix(s.Root, "/"):
		return fmt.Errorf("root directory %q is not absolute: %w", s.Root, vfs.ErrInvalid)
	case s.Dir != "" && !strings.HasPrefix(s.Dir, "/"):
		return fmt.Errorf("working directory %q is not absolute: %w", s.Dir, vfs.ErrInvalid)
	case s.Timeout < 0 || s.Timeout > MaxTimeout:
		return fmt.Errorf("time limit %v: %w", s.Timeout, vfs.ErrInvalid)
	case s.Input != nil && !json.Valid(s.Input):
		return fmt.Errorf("input is not JSON: %w", vfs.ErrInvalid)
	case len(s.Source) > MaxSource, len(s.Stdin) > MaxInput, len(s.Input) > MaxInput:
		return fmt.Errorf("source or input of an exec: %w", vfs.ErrTooBig)
	}
	return s.checkStrings()
}

func (s *Spec) checkStrings() error {
	total := 0
	for _, list := range [][]string{s.Args, s.Env, {s.Dir, s.Root}} {
		for _, x := range list {
			total += len(x) + 1
			if strings.IndexByte(x, 0) >= 0 {
				return fmt.Errorf("NUL in %q: %w", x, vfs.ErrInvalid)
			}
		}
	}
	if total > MaxArgs {
		return fmt.Errorf("%d bytes of arguments and environment: %w", total, vfs.ErrTooBig)
	}
	for _, e := range s.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fmt.Errorf("environment %q is not NAME=value: %w", e, vfs.ErrInvalid)
		}
	}
	return nil
}

// normal returns the spec with what was left out put in.
func (s Spec) normal() Spec {
	s.Dir = path.Clean("/" + s.Dir)
	return s
}

// digest tells specs apart, but for their ids.
func (s Spec) digest() [sha256.Size]byte {
	s.ID = ""
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings, numbers and valid JSON
	}
	return sha256.Sum256(b)
}

// public returns the spec without what may be secret.
func (s Spec) public() Spec {
	s.Env, s.Stdin, s.Input = nil, nil, nil
	return s
}

func validID(id string) bool {
	if id == "" || len(id) > MaxID || id[0] == '.' {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) < 0
}
