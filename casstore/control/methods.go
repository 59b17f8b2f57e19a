package control

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// methods says what the owner does for each method.
var methods = map[method]func(context.Context, *invocation, *request, *reply) error{
	callCreateWorkspace: createWorkspace,
	callWorkspaces:      workspaces,
	callInfo:            info,
	callRenameWorkspace: renameWorkspace,
	callRemoveWorkspace: removeWorkspace,
	callOpenWorkspace:   openWorkspace,
	callCloseWorkspace:  closeWorkspace,
	callCheck:           check,
	callStats:           stats,
	callGC:              collect,

	callCreateSnapshot: createSnapshot,
	callSnapshots:      snapshots,
	callRemoveSnapshot: removeSnapshot,
	callLog:            log,
	callHistory:        history,
	callKeepHistory:    keepHistory,
	callFork:           fork,
	callDiff:           diff,
	callRestore:        restore,
	callSetQuota:       setQuota,
	callQuota:          quota,

	callMerge:           merge,
	callConflicts:       conflicts,
	callResolveConflict: resolveConflict,

	callMount:       mount,
	callUnmount:     unmount,
	callWaitUnmount: waitUnmount,
	callMounts:      listMounts,

	callServe:         serve,
	callServed:        served,
	callTokensChanged: tokensChanged,

	callWatch:   onTree(watch),
	callReadDir: onTree(readDir),

	callLookup:      onTree(lookup),
	callStat:        onTree(stat),
	callSetAttr:     onTree(setAttr),
	callCreate:      onTree(create),
	callMkdir:       onTree(mkdir),
	callMknod:       onTree(mknod),
	callSymlink:     onTree(symlink),
	callLink:        onTree(link),
	callUnlink:      onTree(unlink),
	callRmdir:       onTree(rmdir),
	callRename:      onTree(rename),
	callReadlink:    onTree(readlink),
	callReadAt:      onTree(readAt),
	callWriteAt:     onTree(writeAt),
	callAllocate:    onTree(allocate),
	callCopyRange:   onTree(copyRange),
	callSeek:        onTree(seek),
	callGetXattr:    onTree(getXattr),
	callSetXattr:    onTree(setXattr),
	callListXattr:   onTree(listXattr),
	callRemoveXattr: onTree(removeXattr),
	callFsync:       onTree(fsync),
	callSync:        onTree(syncTree),
	callCommit:      onTree(commit),
	callStatFS:      onTree(statFS),
}

func createWorkspace(ctx context.Context, i *invocation, q *request, r *reply) error {
	return oneInfo(r)(i.session.server.store.CreateWorkspace(ctx, q.Name))
}

func info(ctx context.Context, i *invocation, q *request, r *reply) error {
	return oneInfo(r)(i.session.server.store.Info(ctx, q.Name))
}

func oneInfo(r *reply) func(casstore.Info, error) error {
	return func(in casstore.Info, err error) error {
		r.Infos = []casstore.Info{in}
		return err
	}
}

func workspaces(ctx context.Context, i *invocation, _ *request, r *reply) (err error) {
	r.Infos, err = i.session.server.store.Workspaces(ctx)
	return err
}

func renameWorkspace(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.RenameWorkspace(ctx, q.Name, q.NewName)
}

func removeWorkspace(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.RemoveWorkspace(ctx, q.Name)
}

func openWorkspace(ctx context.Context, i *invocation, q *request, r *reply) (err error) {
	r.Tree, err = i.session.openTree(ctx, q.Name)
	return err
}

func closeWorkspace(_ context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.closeTree(q.Tree)
}

// check sends its progress as parts. A client that is gone has had its context ended, so errors of a part need no care.
func check(ctx context.Context, i *invocation, q *request, r *reply) error {
	o := casstore.CheckOptions{Bytes: q.Flags != 0}
	o.Progress = func(done, total uint64) { _ = i.part(&reply{N: done, Total: total}) }
	report, err := i.session.server.store.Check(ctx, o)
	r.Check = &report
	return err
}

func stats(ctx context.Context, i *invocation, _ *request, r *reply) error {
	s, err := i.session.server.store.Stats(ctx)
	r.Stats = &s
	return err
}

func collect(ctx context.Context, i *invocation, _ *request, r *reply) error {
	g, err := i.session.server.store.GC(ctx)
	r.GC = &g
	return err
}

// mountsOf returns what this owner mounts with.
func mountsOf(i *invocation) (Mounts, error) {
	if m := i.session.server.mounts; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("mount by a process that only works on the store for a moment: %w", vfs.ErrNotSupported)
}

func mount(ctx context.Context, i *invocation, q *request, _ *reply) error {
	m, err := mountsOf(i)
	if err != nil {
		return err
	}
	if q.Mount == nil {
		return fmt.Errorf("mount of nothing: %w", vfs.ErrInvalid)
	}
	return m.Mount(ctx, *q.Mount)
}

func unmount(ctx context.Context, i *invocation, q *request, r *reply) error {
	m, err := mountsOf(i)
	if err != nil {
		return err
	}
	r.Flag, err = m.Unmount(ctx, q.Name, q.Flags != 0)
	return err
}

func waitUnmount(ctx context.Context, i *invocation, q *request, _ *reply) error {
	m, err := mountsOf(i)
	if err != nil {
		return err
	}
	return m.WaitUnmount(ctx, q.Name)
}

func listMounts(ctx context.Context, i *invocation, _ *request, r *reply) error {
	m, err := mountsOf(i)
	if err != nil {
		return err
	}
	r.Mounts, err = m.Mounts(ctx)
	return err
}
