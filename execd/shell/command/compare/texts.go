package compare

import (
	"context"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Texts are two texts that were compared line by line.
type Texts struct {
	Inserted, Deleted int // lines

	d       *comparison
	x, y    *side
	changes []change
}

// NewTexts compares two texts for a call, which pays for the work and whose Out takes the hunks.
func NewTexts(ctx context.Context, c *tool.Call, a, b []byte) (*Texts, error) {
	t := &Texts{d: &comparison{Call: c, ctx: ctx}, x: &side{}, y: &side{}}
	if err := t.d.split(t.x, a); err != nil {
		return nil, err
	}
	if err := t.d.split(t.y, b); err != nil {
		return nil, err
	}
	ids := t.d.number(t.x, t.y)
	var err error
	if t.changes, err = edits(ids[0], ids[1], func(n int) error { return c.Step(ctx, n) }); err != nil {
		return nil, err
	}
	for _, h := range t.changes {
		t.Inserted += h.inserted
		t.Deleted += h.deleted
	}
	return t, nil
}

// Hunks writes the hunks of a unified diff. section says what a hunk is in, by the lines before it; it follows the
// hunk's second @@.
func (t *Texts) Hunks(context int, section func(before [][]byte) string) error {
	t.d.context = context
	return t.d.unifiedHunks(t.x, t.y, t.changes, section)
}

// Edit says that Deleted lines of the first text, from A on, give way to Inserted lines of the second, from B on.
type Edit struct{ A, Deleted, B, Inserted int }

// Edits returns what was changed, in order.
func (t *Texts) Edits() []Edit {
	list := make([]Edit, len(t.changes))
	for i, c := range t.changes {
		list[i] = Edit{c.a, c.deleted, c.b, c.inserted}
	}
	return list
}
