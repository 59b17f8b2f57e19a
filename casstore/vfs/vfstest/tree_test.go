package vfstest_test

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestTreeConforms(t *testing.T) {
	vfstest.Run(t, func(*testing.T) vfs.Tree { return vfstest.NewTree() })
}
