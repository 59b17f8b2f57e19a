package tools

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// SnapshotArgs names a state.
type SnapshotArgs struct {
	Name    string `json:"name" jsonschema:"its name"`
	Message string `json:"message,omitempty" jsonschema:"why it is kept"`
}

// SnapshotResult says what was kept.
type SnapshotResult struct {
	Name     string  `json:"name"`
	Revision vfs.Rev `json:"revision"`
}

// Snapshot keeps the workspace as it is now under a name. Diff can compare with it.
func (s *Set) Snapshot(ctx context.Context, a SnapshotArgs) (*SnapshotResult, error) {
	if s.History == nil {
		return nil, fmt.Errorf("snapshot: %w", vfs.ErrNotSupported)
	}
	var rev vfs.Rev
	err := s.change(ctx, "snapshot", func() (err error) {
		rev, err = s.History.Snapshot(ctx, a.Name, a.Message)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &SnapshotResult{a.Name, rev}, nil
}
