package execd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// What a feed has is taken once, however often it is given, and what would leave a gap is refused.
func TestFeed(t *testing.T) {
	d := openDesk(t, nil)
	e := d.mustStart(t, Spec{Args: []string{"cat"}, Stdin: []byte("0"), Open: true})
	for _, tt := range []struct {
		feed   string
		offset uint64
		text   string
		taken  uint64
		err    error
	}{
		{"a", 0, "12", 2, nil},
		{"a", 0, "12", 2, nil},
		{"a", 1, "23", 3, nil},
		{"a", 0, "", 3, nil},
		{"a", 4, "5", 3, vfs.ErrInvalid},
		{"a", 1 << 63, "5", 3, vfs.ErrInvalid},
		{"b", 1, "x", 0, vfs.ErrInvalid},
		{"b", 0, "4", 1, nil},
		{"a", 3, "5", 4, nil},
		{"", 0, "x", 0, vfs.ErrInvalid},
		{"a/b", 0, "x", 0, vfs.ErrInvalid},
	} {
		if taken, err := e.Feed(t.Context(), tt.feed, tt.offset, []byte(tt.text)); taken != tt.taken || !errors.Is(err, tt.err) {
			t.Errorf("%q from %d on of %q: %d, %v, want %d, %v", tt.text, tt.offset, tt.feed, taken, err, tt.taken, tt.err)
		}
	}
	for i := range MaxFeeds {
		_, err := e.Feed(t.Context(), fmt.Sprint("more", i), 0, []byte("."))
		if full := i >= MaxFeeds-2; errors.Is(err, vfs.ErrBusy) != full || !full && err != nil {
			t.Errorf("feed %d: %v", i, err)
		}
	}
	if err := e.CloseInput(); err != nil {
		t.Fatal(err)
	}
	wait(t, e)
	if got := output(t, e); got != "012345"+string(bytes.Repeat([]byte("."), MaxFeeds-2)) {
		t.Errorf("got %q", got)
	}
	if _, err := e.Feed(t.Context(), "a", 4, []byte("x")); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// piecemeal is a run that takes input in pieces, some of them only in part before who gives it goes away.
type piecemeal struct {
	Process
	mu   sync.Mutex
	rand *rand.Rand
	got  bytes.Buffer
}

func (p *piecemeal) Input(_ context.Context, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.rand.IntN(len(b) + 1)
	p.got.Write(b[:n])
	if n < len(b) {
		return n, fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	return n, nil
}

// Input of which a part was taken when its caller went is taken on where that was, also by callers that do not wait for each other.
func TestFeedInPart(t *testing.T) {
	seed := vfstest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	p := &piecemeal{rand: rand.New(rand.NewPCG(seed, 1))}
	e := &Exec{state: StateRunning, process: p, feeds: newFeeds()}
	all := make([]byte, 100_000)
	for i := range all {
		all[i] = byte(random.Uint32())
	}
	for given := 0; given < len(all); {
		n := min(1+random.IntN(1000), len(all)-given)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for {
					_, err := e.Feed(t.Context(), "f", uint64(given), all[given:given+n])
					if err == nil {
						return
					}
					if !errors.Is(err, vfs.ErrInterrupted) {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		given += n
	}
	if got, err := io.ReadAll(&p.got); err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d bytes of %d, or others", len(got), len(all))
	}
}
