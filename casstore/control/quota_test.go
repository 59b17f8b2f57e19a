package control_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func (m *memStore) SetQuota(_ context.Context, workspace string, q casstore.Quota) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quota = casstore.QuotaUse{Quota: q, UsedInodes: uint64(len(workspace))}
	return nil
}

func (m *memStore) Quota(_ context.Context, workspace string) (casstore.QuotaUse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if workspace == "none" {
		return casstore.QuotaUse{}, fmt.Errorf("quota of %q: %w", workspace, vfs.ErrNoWorkspace)
	}
	return m.quota, nil
}

func TestQuota(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	if use, err := c.Quota(ctx, "demo"); err != nil || use != (casstore.QuotaUse{}) {
		t.Errorf("Quota = %+v, %v", use, err)
	}
	for _, q := range []casstore.Quota{{Bytes: 5, Inodes: 6}, {Inodes: 7}, {}} {
		if err := c.SetQuota(ctx, "demo", q); err != nil {
			t.Error(err)
		}
		if use, err := c.Quota(ctx, "demo"); err != nil || use != (casstore.QuotaUse{Quota: q, UsedInodes: 4}) {
			t.Errorf("Quota = %+v, %v", use, err)
		}
	}
	if _, err := c.Quota(ctx, "none"); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("Quota of none: %v", err)
	}
}
