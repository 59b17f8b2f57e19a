package syncwire

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Verifier decides on tokens.
type Verifier interface {
	// Verify returns what a token grants on a workspace: ErrToken for one that is unknown, expired, revoked, or not for
	// the workspace. It must take as long for an unknown token as for a known one.
	Verify(ctx context.Context, token []byte, workspace string) (Grant, error)
}

// Grant is what a token allows.
type Grant struct {
	// Subject is for whom the token was made. All tokens of a subject are the same peer's: a new one goes on with what
	// was leased under the old.
	Subject string
	Rights  Rights
	Expires time.Time // zero for never
	// Revoked, if set, is closed when the token is revoked: sessions that it began end at once.
	Revoked <-chan struct{}
}

// peerID returns the id under which an authority knows a subject's mirror.
func peerID(subject string, mirror [16]byte) vfs.PeerID {
	sum := sha256.Sum256(append(append([]byte("carrel peer\x00"), mirror[:]...), subject...))
	return vfs.PeerID(sum[:16])
}

// Bind returns a context that ends with the grant too. The cause is then ErrToken. Nothing is left of it once it has ended.
func (g *Grant) Bind(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if !g.Expires.IsZero() {
		timer := time.AfterFunc(time.Until(g.Expires), func() { cancel(ErrToken) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	if g.Revoked != nil {
		go func() {
			select {
			case <-g.Revoked:
				cancel(ErrToken)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}
