package casstore

import (
	"bytes"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// mergeText merges a file line by line, if it is text on all sides.
func (m *merging) mergeText(base, mine, theirs *vfs.InodeRecord) (body vfs.Body, size uint64, ok bool, err error) {
	var texts [3][]byte
	for i, rec := range []*vfs.InodeRecord{base, mine, theirs} {
		if rec.Size > mergeText {
			return body, 0, false, nil
		}
		texts[i] = make([]byte, rec.Size)
		b, err := m.store.decodeBody(rec.Body)
		if err == nil {
			err = m.store.readBase(m.ctx, b, texts[i], 0)
		}
		if err != nil {
			return body, 0, false, err
		}
		if !utf8.Valid(texts[i]) || bytes.IndexByte(texts[i], 0) >= 0 || bytes.Count(texts[i], []byte("\n")) > mergeLines {
			return body, 0, false, nil
		}
	}
	merged, ok := reconcile.MergeLines(texts[0], texts[1], texts[2])
	if !ok {
		return body, 0, false, nil
	}
	body, err = m.bodyOf(merged)
	return body, uint64(len(merged)), err == nil, err
}

// bodyOf is the body of a file of these bytes. What it needs of chunks it stores, where the collector spares them, unless
// the merge is only tried.
func (m *merging) bodyOf(text []byte) (vfs.Body, error) {
	if len(text) <= vfs.MaxInline {
		return m.store.encodeBody(base{inline: text}, chunk.Manifest{})
	}
	var list []vfs.Chunk
	var entries []chunk.Entry
	for rest := text; len(rest) > 0; {
		n, _ := new(chunk.Cutter).Cut(rest)
		c := vfs.Chunk{ID: chunk.Sum(rest[:n]), Codec: chunk.Raw, PlainLen: n, Stored: rest[:n]}
		list = append(list, c)
		entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(n)})
		rest = rest[n:]
	}
	if !m.try {
		err := m.store.space.admit(m.ctx, len(text))
		if err == nil {
			err = m.store.accept(list)
		}
		if err != nil {
			return vfs.Body{}, err
		}
	}
	return m.store.encodeBody(base{manifest: chunk.NewManifest(entries)}, chunk.Manifest{})
}
