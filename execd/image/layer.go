package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// unpackAll unpacks the layers of an image into a directory that it makes.
func unpackAll(ctx context.Context, from source, m *manifest, dir string, b *bounds) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	t := &tree{root: root, left: b, closed: map[string]fs.FileMode{}}
	for i, name := range m.layers {
		if err == nil {
			err = unpackLayer(ctx, from, name, m.config.RootFS.DiffIDs[i], &layer{tree: t, own: map[string]bool{}})
		}
	}
	if err == nil {
		err = t.close()
	}
	return errors.Join(err, root.Close())
}

// unpackLayer unpacks one layer, whose plain bytes have a digest.
func unpackLayer(ctx context.Context, from source, name, digest string, l *layer) error {
	f, err := from.Open(name)
	if err != nil {
		return fmt.Errorf("layer %s: %w", digest, err)
	}
	err = l.read(ctx, f, digest)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("layer %s: %w", digest, err)
	}
	return nil
}

// read unpacks what a reader has, and compares its digest.
func (l *layer) read(ctx context.Context, f io.Reader, digest string) error {
	plain, err := decompress(&interruptible{ctx, f})
	if err != nil {
		return err
	}
	defer plain.Close()
	sum := sha256.New()
	all := io.TeeReader(&bounded{plain, l.left.plain()}, sum)
	err = l.unpack(tar.NewReader(all))
	if err == nil {
		_, err = io.Copy(io.Discard, all) // what comes after the archive counts too
	}
	if err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("it has the digest %s: %w", got, vfs.ErrCorrupt)
	}
	return nil
}

// decompress reads gzip, zstd, or what is neither, by how it begins.
func decompress(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", vfs.ErrCorrupt, err)
		}
		return z, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(b), nil
}

// bounded fails once it has read more than so much. An archive can go on for ever without a file in it.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("an archive that is longer than what is in it: %w", vfs.ErrTooBig)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	return n, err
}

// interruptible reads until its context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, fmt.Errorf("unpack an image: %w", vfs.ErrInterrupted)
	}
	return i.r.Read(p)
}
