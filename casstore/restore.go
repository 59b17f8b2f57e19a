package casstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Restore makes a workspace, or what is under one path of it when that is not empty, what it was at a moment, as a new
// revision: all at once, also for those who have it mounted. Inodes that were removed come back under their numbers. What
// it was before the call can be restored as well, as long as that is kept.
//
// Of a path only the bytes of files can be seen elsewhere: by the names that a hard link gives them. ErrNoWorkspace,
// ErrNoRevision, ErrNotExist when the path led nowhere then or its directory is gone, ErrTooBig when more than 65,536
// records or 16 MiB of them are to change, or the path has more than a million names, ErrBusy when the workspace keeps
// changing there.
func (s *Store) Restore(ctx context.Context, workspace, when, path string) error {
	if err := s.restore(ctx, workspace, when, path); err != nil {
		return fmt.Errorf("restore %s of workspace %q to %q: %w", cmp.Or(path, "all"), workspace, when, err)
	}
	return nil
}

func (s *Store) restore(ctx context.Context, workspace, when, path string) error {
	w, err := s.OpenWorkspace(ctx, workspace)
	if err != nil {
		return err
	}
	defer w.leave()
	then, err := s.diffSide(ctx, workspace+"@"+when)
	if err != nil {
		return err
	}
	defer then.close()
	spare := make(map[vfs.Ino]vfs.Ino)
	for range pushTries {
		r := &restorer{ctx: ctx, then: then, stamp: s.now(), seen: make(map[vfs.Key]struct{}), spare: spare}
		records, err := r.from(workspace, path)
		if err != nil || len(records) == 0 {
			return err
		}
		stale, err := w.takeOver(ctx, r.incoming(w.id, path, records))
		if err != nil || !stale {
			return err
		}
	}
	return fmt.Errorf("it has changed %d times meanwhile: %w", pushTries, vfs.ErrBusy)
}

// from returns the records that make a workspace, as it is now, what it was.
func (p *restorer) from(workspace, path string) (records []vfs.PushRecord, err error) {
	if p.now, err = p.then.view.store.diffSide(p.ctx, workspace); err != nil {
		return nil, err
	}
	defer p.now.close()
	err = p.at(path)
	return p.records, err
}

// incoming is what restores a workspace. When it is all of it, what was merged into it since can be merged again.
func (p *restorer) incoming(ws workspaceID, path string, records []vfs.PushRecord) *Incoming {
	in := &Incoming{Records: records, kind: RevisionRestore}
	if strings.Trim(path, "/") == "" {
		in.also = func(v *revision) error {
			return v.undoMerges(ws, p.then)
		}
	}
	return in
}

// takeOver puts records into the live tree, and reports whether they did not fit any more. Then nothing has happened.
func (w *Workspace) takeOver(ctx context.Context, in *Incoming) (stale bool, err error) {
	if err := w.enter(); err != nil {
		return false, err
	}
	defer w.store.calls.Done()
	vfs.WillBlock(ctx)
	j := &pushJob{
		tree: w, push: &vfs.Push{Records: in.Records}, origin: vfs.OriginOf(ctx), done: make(chan error, 1), kind: in.kind,
		incoming: in,
	}
	err = w.store.committer.push(ctx, j)
	return len(j.outcome.Stale) > 0, err
}
