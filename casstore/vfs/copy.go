package vfs

import "context"

// copyBuffer is how many bytes CopyBytes reads at a time.
const copyBuffer = 1 << 20

// CopyBytes does what Tree.CopyRange promises by reading and writing: for trees that have nothing to share, and for
// ranges where sharing is not possible.
func CopyBytes(ctx context.Context, t Tree, src Ino, off uint64, dst Ino, dstOff, n uint64) (copied uint64, err error) {
	if err := CheckCopy(src, off, dst, dstOff, n); err != nil {
		return 0, err
	}
	p := make([]byte, min(n, copyBuffer))
	for copied < n {
		k, err := t.ReadAt(ctx, src, p[:min(uint64(len(p)), n-copied)], off+copied)
		if err != nil || k == 0 {
			return copied, err
		}
		if err := t.WriteAt(ctx, dst, p[:k], dstOff+copied, false); err != nil {
			return copied, err
		}
		copied += uint64(k)
	}
	return copied, nil
}

// CheckCopy returns what is wrong with a range to copy: ErrInvalid when it overlaps the one it goes to, ErrTooBig when
// either is past MaxFileSize.
func CheckCopy(src Ino, off uint64, dst Ino, dstOff, n uint64) error {
	far := max(off, dstOff)
	switch {
	case far > MaxFileSize || n > MaxFileSize-far:
		return ErrTooBig
	case src == dst && off < dstOff+n && dstOff < off+n:
		return ErrInvalid
	}
	return nil
}
