package mirror

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// digestWatch says when digests are compared again, and how often they differed in a row.
type digestWatch struct {
	next     time.Time
	failures int
}

// verify compares the digest of what the mirror knows of the authority with the authority's own, at the position that the
// mirror has got to. Whoever calls it has the turn. A difference is looked for and repaired.
func (m *Mirror) verify(ctx context.Context) error {
	p, _ := m.position()
	if len(m.ahead) > 0 || m.loader.isPast(p.Rev) || p.Digest == (vfs.Digest{}) || time.Now().Before(m.digest.next) {
		return nil
	}
	began := time.Now()
	sums, err := m.replica.Theirs(ctx, []vfs.InoRange{vfs.AllInos})
	if err != nil {
		return err
	}
	if took := time.Since(began); took > time.Millisecond {
		m.digest.next = time.Now().Add(digestPause * took)
	}
	if sums[0] == p.Digest {
		m.digest.failures = 0
		return nil
	}
	if m.digest.failures == 0 {
		m.log.Error("what is known of the authority is not what it has; looking for it", "revision", p.Rev)
	}
	m.digest.failures++
	m.stats.mismatches.Add(1)
	return m.repair(ctx, p)
}

// repair finds the inodes whose records are not the authority's, and takes over what it has.
func (m *Mirror) repair(ctx context.Context, p vfs.Position) error {
	if m.digest.failures > repairs {
		m.digest.failures = 0
		return m.compareAll()
	}
	t := taking{position: p, mending: true}
	ranges := []vfs.InoRange{vfs.AllInos}
	for len(ranges) > 0 {
		var differ []vfs.InoRange
		for len(ranges) > 0 {
			n := min(len(ranges), vfs.MaxSumRanges/fanOut)
			pieces := pieces(ranges[:n])
			ranges = ranges[n:]
			same, some, err := m.differences(ctx, pieces, p.Rev)
			if err != nil {
				return err
			}
			if !same {
				return nil // the authority has moved on: the next position is looked at
			}
			differ = append(differ, some...)
		}
		if len(differ) > maxDiffer {
			return m.compareAll()
		}
		for _, in := range differ {
			if in.First < in.Last {
				ranges = append(ranges, in)
				continue
			}
			if err := m.compareInode(ctx, in.First, &t); err != nil {
				return err
			}
		}
	}
	m.stats.repaired.Add(uint64(len(t.changes)))
	for _, r := range t.changes {
		m.log.Info("repaired", "record", r.Key)
	}
	return m.merge(ctx, t)
}

const (
	// fanOut is into how many pieces a range is cut that differs.
	fanOut = 64
	// maxDiffer is how many ranges may differ before everything is compared.
	maxDiffer = 1 << 10
)

// pieces cuts each range into fanOut.
func pieces(ranges []vfs.InoRange) (out []vfs.InoRange) {
	for _, in := range ranges {
		step := max((in.Last-in.First)/fanOut, 1)
		for first := in.First; ; first += step {
			last := first + step - 1
			if last >= in.Last || last < first || len(out)%fanOut == fanOut-1 {
				out = append(out, vfs.InoRange{First: first, Last: in.Last})
				break
			}
			out = append(out, vfs.InoRange{First: first, Last: last})
		}
	}
	return out
}

// differences returns those of ranges in which the two sides differ. same is false when the authority is no longer at rev.
func (m *Mirror) differences(
	ctx context.Context, ranges []vfs.InoRange, rev vfs.Rev,
) (same bool, differ []vfs.InoRange, err error) {
	theirs, at, err := m.config.Peer.Sums(ctx, ranges)
	if err != nil || at != rev {
		return false, nil, err
	}
	known, err := m.replica.Theirs(ctx, ranges)
	if err != nil {
		return false, nil, err
	}
	for i := range ranges {
		if theirs[i] != known[i] {
			differ = append(differ, ranges[i])
		}
	}
	return true, differ, nil
}

// compareInode adds to what is taken over where the records of an inode differ.
func (m *Mirror) compareInode(ctx context.Context, ino vfs.Ino, t *taking) error {
	c := newComparison(m)
	c.next = ino
	var theirs []vfs.Record
	in := vfs.InoRange{First: ino, Last: ino}
	_, err := m.config.Peer.Read(ctx, vfs.Query{Range: in}, func(r vfs.Record) error {
		r.Value = bytes.Clone(r.Value)
		theirs = append(theirs, r)
		return nil
	})
	if err == nil {
		err = c.upTo(ctx, theirs, ino)
	}
	if err != nil {
		return fmt.Errorf("compare inode %d: %w", ino, err)
	}
	t.changes = append(t.changes, c.changes...)
	return nil
}
