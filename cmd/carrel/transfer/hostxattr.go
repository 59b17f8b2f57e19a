package transfer

import (
	"bytes"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// xattrBuffers holds buffers that take any list of names and any value (vfs.MaxXattrList, vfs.MaxXattrSize).
var xattrBuffers = sync.Pool{New: func() any {
	b := make([]byte, max(vfs.MaxXattrList, vfs.MaxXattrSize))
	return &b
}}

// splitNames cuts what listxattr(2) gives: names that each end in NUL.
func splitNames(list []byte) []string {
	var names []string
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}
