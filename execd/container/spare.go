package container

import "time"

// spare is a container that nobody has asked for yet: all of it is there but the workspace, so that the first exec of one
// waits for nothing but a mount. There is at most one, of the kind that was made last, and none before anybody has made a
// container. Backend.mu guards it.
type spare struct {
	cell   *cell
	making bool
}

// kind is the key of a cell without its workspace.
func (k cellKey) kind() cellKey {
	k.workspace = ""
	return k
}

// takeSpareLocked returns the spare for a key, or nil when there is none of that kind.
func (b *Backend) takeSpareLocked(key cellKey) *cell {
	c := b.spare.cell
	if c == nil || c.key != key.kind() {
		return nil
	}
	b.spare.cell = nil
	c.key = key
	return c
}

// spareLater has a spare made of the kind of key, unless a container cannot have one. Not at once: the exec that has just
// had a container made would have to share the processors with that.
func (b *Backend) spareLater(key cellKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rootless() || b.closed || b.spare.making || b.spare.cell != nil && b.spare.cell.key == key.kind() {
		return
	}
	b.spare.making = true
	b.owned.Go(func() {
		wait := time.NewTimer(spareDelay)
		defer wait.Stop()
		select {
		case <-wait.C:
			b.makeSpare(key.kind())
		case <-b.stop:
		}
	})
}

// makeSpare makes a spare in place of the one of another kind, if there is one. When it fails, so will the next container,
// whose user hears why.
func (b *Backend) makeSpare(kind cellKey) {
	c := newCell(b, kind)
	b.owned.Add(1)
	err := c.furnish("")
	if err == nil {
		c.prepare()
	}
	b.mu.Lock()
	b.spare.making = false
	over := b.spare.cell
	if err == nil && !b.closed {
		b.spare.cell = c
	} else {
		over = c
	}
	b.mu.Unlock()
	if over != nil {
		b.end(over)
	}
}
