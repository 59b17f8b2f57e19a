package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/carrelfs/carrel/casstore/control"
)

// recordName is the file in the store's directory that says what the daemon has mounted, for the one after it.
const recordName = "mounts.json"

// recorded is a mount in the record. Names are bytes, which JSON has only in base64. The id finds a workspace that was
// renamed while it was mounted.
type recorded struct {
	ID         uint64
	Workspace  []byte
	Dir        []byte
	ReadOnly   bool
	AllowOther bool
	Doze       bool
}

func (r recorded) mount() control.Mount {
	return control.Mount{
		Workspace: string(r.Workspace), Dir: string(r.Dir), ReadOnly: r.ReadOnly, AllowOther: r.AllowOther, Doze: r.Doze,
	}
}

// writeRecord replaces the record at once. It need not survive the machine: mounts do not either. An empty record says that
// nothing is to be mounted again; without one (nil) that is not known.
func writeRecord(store string, list []recorded) error {
	path := filepath.Join(store, recordName)
	if list == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, b, 0o600, renameio.WithTempDir(store))
}

// readRecord returns nil when there is no record.
func readRecord(store string) ([]recorded, error) {
	b, err := os.ReadFile(filepath.Join(store, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []recorded
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", recordName, err)
	}
	return list, nil
}
