package vfs

import "context"

type contextKey int

// Keys of what a context may carry into a tree. A context type of one's own may answer them in its Value method, which
// costs no allocation; the functions below do it for ordinary contexts.
const (
	// BlockHookKey leads to a [BlockHook].
	BlockHookKey contextKey = iota
	// OriginKey leads to whatever tells one caller of a tree from another; it comes back in [Change.Origin].
	OriginKey
)

// BlockHook hears that a call is about to wait. fusefs uses it to hand the role of reading requests to another
// goroutine, so that calls which are answered from memory need none.
type BlockHook interface {
	// WillBlock may be called more than once in a call, and with locks of the tree held: it must not call the tree.
	WillBlock()
}

// WillBlock tells the hook in ctx, if there is one, that the caller is about to wait.
func WillBlock(ctx context.Context) {
	if h, ok := ctx.Value(BlockHookKey).(BlockHook); ok {
		h.WillBlock()
	}
}

// WithOrigin returns a context whose changes carry origin, which must be comparable.
func WithOrigin(ctx context.Context, origin any) context.Context {
	return context.WithValue(ctx, OriginKey, origin)
}

// OriginOf returns the origin in ctx, or nil.
func OriginOf(ctx context.Context) any { return ctx.Value(OriginKey) }
