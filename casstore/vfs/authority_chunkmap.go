package vfs

import (
	"bytes"
	"context"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// ChunkMap keeps chunks in memory, all that it is given. It implements Chunks, but does not look at what it is given: Guard
// does. The zero ChunkMap is ready, and empty.
type ChunkMap struct {
	mu     sync.Mutex
	chunks map[chunk.ID]Chunk
}

// Find returns a chunk. Its bytes are the map's, and are not to be changed.
func (m *ChunkMap) Find(id chunk.ID) (c Chunk, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok = m.chunks[id]
	return c, ok
}

// MissingChunks implements Chunks.
func (m *ChunkMap) MissingChunks(_ context.Context, ids []chunk.ID) (missing []chunk.ID, err error) {
	for _, id := range ids {
		if _, ok := m.Find(id); !ok {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

// ReadChunks implements Chunks.
func (m *ChunkMap) ReadChunks(_ context.Context, ids []chunk.ID, yield func(Chunk) error) error {
	for _, id := range ids {
		if c, ok := m.Find(id); ok {
			if err := yield(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteChunks implements Chunks.
func (m *ChunkMap) WriteChunks(_ context.Context, chunks []Chunk) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chunks == nil {
		m.chunks = make(map[chunk.ID]Chunk)
	}
	for _, c := range chunks {
		c.Stored = bytes.Clone(c.Stored)
		m.chunks[c.ID] = c
	}
	return nil
}
