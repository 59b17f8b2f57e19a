package syncwire

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Follower receives a feed. Its methods are called by one goroutine, in order; an error of one ends the feed and is
// returned by Follow. What is received belongs to no revision until Update has been called.
type Follower interface {
	// Resume says up to where the follower has everything, the zero Cursor for nothing; from is zero, or the last inode
	// number of which something had come when a snapshot was cut off that began at since (see FeedPart.Start). It is
	// called whenever the feed begins anew, after a lost connection too.
	Resume() (since vfs.Cursor, from vfs.Ino)
	// Begin says what the next records are.
	Begin(FeedPart) error
	// Records brings records. Their values are good only until it returns.
	Records([]vfs.Record) error
	// Update says at which revision all that came since Begin is so.
	Update(FeedUpdate) error
}

// FeedPart is what stands before records of a feed.
type FeedPart struct {
	// Since is the revision after which the records changed; zero for a snapshot, which says of everything that it does
	// not hold that it is not there.
	Since vfs.Rev
	// First is the lowest inode number of a snapshot. When it is not zero, the snapshot is the rest of one that was cut
	// off: its update leaves the cursor where it was, and what changed since then comes next.
	First vfs.Ino
	// Start is a cursor at or below the revision of a snapshot: where to resume, with the last inode number, when the
	// snapshot is cut off.
	Start vfs.Cursor
}

// FeedUpdate is what stands behind records of a feed.
type FeedUpdate struct {
	Position vfs.Position
	// Own are pushes of this client, in order, whose records were left out, since it has them. It counts as the answer to
	// them. A record that came since Begin is newer than what one of them says of its key.
	Own []vfs.PushID
}

// Follow has a follower be told what changes, until ctx ends (vfs.ErrInterrupted) or the follower or the server will not
// go on. A lost connection is made again, and the feed goes on from where the follower says.
func (c *Client) Follow(ctx context.Context, in vfs.InoRange, f Follower) error {
	for {
		v, err := c.visit(ctx)
		if err != nil {
			return err
		}
		err = v.follow(ctx, in, f)
		var own *ownError
		switch {
		case errors.As(err, &own):
			return own.err
		case ctx.Err() != nil:
			return interrupted(ctx)
		case errors.Is(err, ErrDraining):
		case !isGone(err) || isFinal(err):
			return err
		}
		c.stats.retries.Add(1)
	}
}

// follow follows over one session.
func (v *visit) follow(ctx context.Context, in vfs.InoRange, f Follower) error {
	since, from := f.Resume()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := v.attach(ctx, &attach{Since: since, From: from, Range: in})
	if err != nil {
		return err
	}
	defer l.stream.Close()
	defer context.AfterFunc(ctx, func() { l.stream.Close() })()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-v.leaving:
			l.stream.Close()
		case <-stopped:
		}
	}()
	welcome, err := v.awaitWelcome(ctx)
	if err != nil {
		return err
	}
	for {
		if err := l.part(ctx, v, f, welcome.Position.Cursor); err != nil {
			select {
			case <-v.leaving:
				return &lostError{ErrDraining}
			default:
				return err
			}
		}
	}
}

// attach opens a feed.
func (v *visit) attach(ctx context.Context, m *attach) (*lane, error) {
	stream, err := v.open(ctx, streamFeed, "")
	if err != nil {
		return nil, err
	}
	l := &lane{stream: stream, r: newFrameReader(stream), w: newFrameWriter(stream)}
	if err := l.w.send(m); err != nil {
		stream.Close()
		return nil, v.lostWith(ctx, err)
	}
	return l, nil
}

// part takes everything from a begin to its update.
func (l *lane) part(ctx context.Context, v *visit, f Follower, start vfs.Cursor) error {
	typ, body, err := l.next(ctx, v)
	if err != nil {
		return err
	}
	if typ != frameBegin {
		return unexpected(frameBegin, typ)
	}
	var b begin
	if err := decodeBody(body, &b); err != nil {
		return err
	}
	if err := f.Begin(FeedPart{Since: b.Since, First: b.First, Start: start}); err != nil {
		return asOwn(err)
	}
	for {
		switch typ, body, err = l.next(ctx, v); {
		case err != nil:
			return err
		case typ == frameRecords:
			var m records
			if err := decodeBody(body, &m); err != nil {
				return err
			}
			if err := f.Records(m.Records); err != nil {
				return asOwn(err)
			}
		case typ == frameUpdate:
			var m update
			if err := decodeBody(body, &m); err != nil {
				return err
			}
			return asOwn(f.Update(FeedUpdate(m)))
		default:
			return unexpected(frameUpdate, typ)
		}
	}
}

// Read implements vfs.Authority.
func (c *Client) Read(ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	if !q.Range.Valid() {
		return vfs.Position{}, fmt.Errorf("read %v: %w", q.Range, vfs.ErrInvalid)
	}
	r := &oneReading{yield: yield}
	_, err := retry(ctx, c, func(v *visit) (none struct{}, err error) {
		ctx, done := v.traced(ctx, frameAttach)
		defer func() { done(err) }()
		l, err := v.attach(ctx, &attach{Since: q.Since, Range: q.Range, Once: true})
		if err != nil {
			return none, err
		}
		defer l.stream.Close()
		defer context.AfterFunc(ctx, func() { l.stream.Close() })()
		err = l.part(ctx, v, r, vfs.Cursor{})
		var own *ownError
		switch {
		case errors.As(err, &own):
		case err != nil && ctx.Err() != nil:
			return none, interrupted(ctx)
		case err != nil && r.begun && isGone(err):
			return none, errors.Unwrap(err)
		}
		return none, err
	})
	return r.position, err
}

// oneReading is a Read that is under way.
type oneReading struct {
	yield    func(vfs.Record) error
	begun    bool
	position vfs.Position
}

func (r *oneReading) Resume() (vfs.Cursor, vfs.Ino) { return vfs.Cursor{}, 0 }
func (r *oneReading) Begin(FeedPart) error          { return nil }

func (r *oneReading) Records(records []vfs.Record) error {
	r.begun = true
	for i := range records {
		if err := r.yield(records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *oneReading) Update(u FeedUpdate) error {
	r.position = u.Position
	return nil
}
