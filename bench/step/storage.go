package step

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// storeSteps are the parts of the store, without a kernel in between. SIZE is in bytes.
var storeSteps = map[string]step{
	"store-hash":            {"SIZE", chunks(func(c []byte) error { _ = chunk.Sum(c); return nil })},
	"store-split":           {"SIZE", split},
	"store-encode-random":   {"SIZE", chunks(encode)},
	"store-encode-text":     {"SIZE", texts(encode)},
	"store-recompress-text": {"SIZE", texts(recompress)},
	"store-decode-text":     {"SIZE", decode},
	"store-append":          {"SIZE", appendPack},
	"store-read":            {"SIZE", readPack},
	"store-create":          {"N", inStore(createInos)},
	"store-lookup":          {"N", inStore(lookupInos)},
	"store-write":           {"SIZE", inStore(writeIno)},
	"store-commit":          {"N", inStore(commits)},
	"store-open":            {"N", openStores},
}

// chunkSize is what the store cuts files into on average.
const chunkSize = chunk.AvgSize

// chunks times f on chunks of random bytes, SIZE of them in all.
func chunks(f func(c []byte) error) func(n []int64, t *timer) error {
	return onChunks(random, f)
}

// texts is chunks with bytes that compress like source code.
func texts(f func(c []byte) error) func(n []int64, t *timer) error {
	return onChunks(text, f)
}

func onChunks(content func(int64) []byte, f func(c []byte) error) func(n []int64, t *timer) error {
	return func(n []int64, t *timer) error {
		pool := content(min(n[0], poolSize))
		return t.time(func() error {
			for done, at := int64(0), 0; done < n[0]; {
				if at >= len(pool) {
					at = 0
				}
				c := pool[at:min(at+chunkSize, len(pool))]
				at += len(c)
				done += int64(len(c))
				if err := f(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// text returns words in lines.
func text(n int64) []byte {
	words := []string{"func", "return", "err", "nil", "if", "range", "context", "name", "store", "chunk", "size", "offset"}
	pick := random(n/4 + 1)
	b := make([]byte, 0, n+16)
	for i := 0; int64(len(b)) < n; i++ {
		p := pick[i%len(pick)]
		b = append(b, words[int(p)%len(words)]...)
		b = strconv.AppendInt(b, int64(p)%7, 10)
		b = append(b, " \n"[i%9/8])
	}
	return b[:n]
}

func split(n []int64, t *timer) error {
	pool := random(min(n[0], poolSize))
	return t.time(func() error {
		for done := int64(0); done < n[0]; done += int64(len(pool)) {
			var c chunk.Cutter
			for p := pool; len(p) > 0; {
				k, _ := c.Cut(p)
				p = p[k:]
			}
		}
		return nil
	})
}

var encoded []byte // the buffer of the steps that encode; a step is a process

func encode(c []byte) error {
	encoded = grown(encoded, len(c))
	_, _ = chunk.Encode(encoded, c)
	return nil
}

func recompress(c []byte) error {
	encoded = grown(encoded, len(c))
	_, _ = chunk.Recompress(encoded, c)
	return nil
}

func grown(b []byte, n int) []byte {
	if cap(b) < chunk.EncodedCap(n) {
		return make([]byte, 0, chunk.EncodedCap(n))
	}
	return b[:0]
}

func decode(n []int64, t *timer) error {
	plain := text(chunkSize)
	codec, stored := chunk.Encode(nil, plain)
	dst := make([]byte, 0, chunkSize)
	return t.time(func() error {
		for done := int64(0); done < n[0]; done += chunkSize {
			if _, err := chunk.Decode(dst, codec, stored, len(plain)); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendPack(n []int64, t *timer) error {
	_, err := fillPack(n[0], t)
	return err
}

// stored is a chunk in a pack.
type stored struct {
	id  chunk.ID
	loc pack.Loc
}

// fillPack appends chunks to packs in the working directory, makes them durable and closes the packs.
func fillPack(size int64, t *timer) (list []stored, err error) {
	s, err := pack.Open("packs", pack.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	from := newSource(size, chunkSize)
	for done := int64(0); done < size; done += chunkSize {
		c := from.block(chunkSize)
		x := stored{id: chunk.Sum(c)} // hashing is another row
		err := t.time(func() (err error) {
			x.loc, err = s.Append(x.id, chunk.Raw, len(c), c)
			return err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, t.time(s.Sync)
}

func readPack(n []int64, t *timer) error {
	list, err := fillPack(n[0], &timer{})
	if err != nil {
		return err
	}
	s, err := pack.Open("packs", pack.Options{})
	if err != nil {
		return err
	}
	buffer := make([]byte, 0, 2*chunkSize)
	err = t.time(func() error {
		for _, c := range list {
			if _, err := s.ReadChunk(buffer, c.loc, c.id); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, s.Close())
}

// inStore calls f with a workspace of a fresh store in the working directory.
func inStore(f func(w *casstore.Workspace, n int64, t *timer) error) func(n []int64, t *timer) error {
	return func(n []int64, t *timer) (err error) {
		s, err := casstore.Open("store", casstore.Options{Create: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if _, err := s.CreateWorkspace(context.Background(), "bench"); err != nil {
			return err
		}
		w, err := s.OpenWorkspace(context.Background(), "bench")
		if err != nil {
			return err
		}
		return errors.Join(f(w, n[0], t), w.Close())
	}
}

func fillInos(w *casstore.Workspace, n int64) error {
	for i := range n {
		_, err := w.Create(context.Background(), vfs.RootIno, strconv.FormatInt(i, 10), vfs.NewNode{Mode: 0o644})
		if err != nil {
			return err
		}
	}
	return nil
}

// createInos makes files and has them committed.
func createInos(w *casstore.Workspace, n int64, t *timer) error {
	return t.time(func() error { return errors.Join(fillInos(w, n), w.Sync(context.Background())) })
}

func lookupInos(w *casstore.Workspace, n int64, t *timer) error {
	if err := fillInos(w, n); err != nil {
		return err
	}
	return t.time(func() error {
		for i := range n {
			if _, err := w.Lookup(context.Background(), vfs.RootIno, strconv.FormatInt(i, 10)); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeIno writes one file and makes it durable.
func writeIno(w *casstore.Workspace, size int64, t *timer) error {
	ctx := context.Background()
	a, err := w.Create(ctx, vfs.RootIno, fileName, vfs.NewNode{Mode: 0o644})
	if err != nil {
		return err
	}
	from := newSource(size, chunkSize)
	return t.time(func() error {
		for at := int64(0); at < size; at += chunkSize {
			if err := w.WriteAt(ctx, a.Ino, from.block(chunkSize), uint64(at), false); err != nil {
				return err
			}
		}
		return w.Fsync(ctx, a.Ino)
	})
}

// commits commits small changes, one after the other.
func commits(w *casstore.Workspace, n int64, t *timer) error {
	ctx := context.Background()
	return t.time(func() error {
		for i := range n {
			if _, err := w.Mkdir(ctx, vfs.RootIno, strconv.FormatInt(i, 10), vfs.NewNode{Mode: 0o755}); err != nil {
				return err
			}
			if _, err := w.Commit(ctx); err != nil {
				return fmt.Errorf("commit %d: %w", i, err)
			}
		}
		return nil
	})
}

// openStores opens and closes a store that has some files.
func openStores(n []int64, t *timer) error {
	fill := inStore(func(w *casstore.Workspace, _ int64, _ *timer) error { return fillInos(w, 1000) })
	if err := fill(n, t); err != nil {
		return err
	}
	return t.time(func() error {
		for range n[0] {
			s, err := casstore.Open("store", casstore.Options{})
			if err != nil {
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
