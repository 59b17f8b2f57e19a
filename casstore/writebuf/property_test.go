package writebuf

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest/seed"
)

// TestBufferIsModel compares short random histories with the model after each step; rapid makes failures small.
func TestBufferIsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const space = 600
		m := newModel(space)
		off := rapid.IntRange(0, space)
		length := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, space))
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write":    func(t *rapid.T) { m.write(off.Draw(t, "off"), length.Draw(t, "n")) },
			"zero":     func(t *rapid.T) { m.zero(off.Draw(t, "off"), length.Draw(t, "n")) },
			"truncate": func(t *rapid.T) { m.truncate(off.Draw(t, "size")) },
			"freeze":   func(*rapid.T) { must(m.freeze()) },
			"drop":     func(*rapid.T) { must(m.drop()) },
			"drop all": func(*rapid.T) { must(m.dropAll()) },
			"read":     func(t *rapid.T) { must(m.check(off.Draw(t, "off"), length.Draw(t, "n"))) },
			"discard": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "dice") == 0 {
					m.discard()
				}
			},
			"": func(*rapid.T) { must(m.checkAll()) },
		})
	})
}

// TestLongRandomRun goes through many thousands of steps, so that lists have many blocks and slabs reach their sizes.
func TestLongRandomRun(t *testing.T) {
	seed := seed.Of(t)
	for _, c := range []struct {
		name          string
		space, length int // bytes
		steps, every  int
	}{
		{"short", 20_000, 12, 20_000, 500},
		{"pages", 1 << 18, 12_000, 2_000, 200},
		{"slabs", 3 << 20, 2 << 20, 40, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("VFSTEST_SEED=%d", seed)
				}
			}()
			m, r := newModel(c.space), rand.New(rand.NewPCG(seed, 0))
			for step := range c.steps {
				err := m.step(r, c.length)
				if err == nil && step%c.every == 0 {
					err = m.checkAll()
				}
				if err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
			}
			settle(t, m)
		})
	}
}

// step does one thing at random.
func (m *model) step(r *rand.Rand, length int) error {
	off, n := r.IntN(m.space+1), r.IntN(length)
	switch dice := r.IntN(1000); {
	case dice < 500:
		m.write(off, n)
	case dice < 650: // a writer that appends, in uneven steps
		for range 8 {
			m.write(off, n/8)
			off = min(off+n/8, m.space)
		}
	case dice < 800:
		m.zero(off, n)
	case dice < 805:
		m.zero(off, m.space/3)
	case dice < 807:
		m.truncate(off)
	case dice < 810:
		return m.freeze()
	case dice < 812:
		return m.drop()
	case dice < 813:
		return m.dropAll()
	default:
		return m.check(off, n)
	}
	return nil
}

// settle stores everything, and checks that nothing is held then.
func settle(t *testing.T, m *model) {
	t.Helper()
	want, _ := m.view(0, m.space)
	if err := m.freeze(); err != nil {
		t.Fatal(err)
	}
	for len(m.buf.Frozen()) > 0 {
		if err := m.drop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := same("stored file", 0, m.base, want); err != nil {
		t.Fatal(err)
	}
	if used := m.pool.Used(); used != 0 {
		t.Fatalf("pool: used %d after everything was dropped", used)
	}
}
