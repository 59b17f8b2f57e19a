package casstore

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// mapError gives errors of the packages below, which do not know vfs, its sentinels.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, chunk.ErrCorrupt) && !errors.Is(err, vfs.ErrCorrupt):
		return fmt.Errorf("%w: %w", vfs.ErrCorrupt, err)
	case errors.Is(err, syscall.ENOSPC) && !errors.Is(err, vfs.ErrNoSpace):
		return fmt.Errorf("%w: %w", vfs.ErrNoSpace, err)
	case errors.Is(err, syscall.EDQUOT) && !errors.Is(err, vfs.ErrQuota):
		return fmt.Errorf("%w: %w", vfs.ErrQuota, err)
	}
	return err
}
