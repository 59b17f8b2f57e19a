package vfs

import (
	"context"
	"fmt"
	"sync"
)

// Head is where a workspace stands, and wakes those who wait for its next revision. An authority whose revisions are all
// made by Set has its methods Position, Wait and Barrier by embedding one. The zero Head is ready, at no revision.
type Head struct {
	mu    sync.Mutex
	at    Position
	moved chan struct{} // closed by the next Set; nil while nobody waits
}

// Now returns where the workspace stands.
func (h *Head) Now() Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

// Set says that a revision was made, and where that has left the workspace.
func (h *Head) Set(p Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = p
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// Position implements Authority.
func (h *Head) Position(context.Context) (Position, error) { return h.Now(), nil }

// Barrier implements Authority: all that was written has its revision.
func (h *Head) Barrier(context.Context) (Position, error) { return h.Now(), nil }

// Wait implements Authority.
func (h *Head) Wait(ctx context.Context, after Rev) (Position, error) {
	for {
		at, moved := h.look()
		if at.Rev > after {
			return at, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return Position{}, fmt.Errorf("wait: %w: %w", ErrInterrupted, context.Cause(ctx))
		}
	}
}

// look returns where the workspace stands, and what is closed when it no longer does.
func (h *Head) look() (Position, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved == nil {
		h.moved = make(chan struct{})
	}
	return h.at, h.moved
}
