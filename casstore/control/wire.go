package control

import (
	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// kind says what a frame is, and so which body follows its header.
type kind uint8

const (
	kindCall    kind = 1 + iota // to the owner: a request follows
	kindCancel                  // to the owner: give the call of this id up; nothing follows
	kindHold                    // to the owner: Hold; a request follows
	kindRelease                 // to the owner: Release; a request follows
	kindReply                   // to the client: the call has ended; a reply follows unless there is an error
	kindPart                    // to the client: a piece of a call that streams; a reply follows
)

// method is an operation of a store, a workspace or the mounts. The numbers are part of the protocol.
type method uint8

const (
	callCreateWorkspace method = 1 + iota
	callWorkspaces
	callInfo
	callRenameWorkspace
	callRemoveWorkspace
	callOpenWorkspace
	callCloseWorkspace
	callCheck
	callStats
	callGC
	callMount
	callUnmount
	callWaitUnmount
	callMounts
	callLookup
	callStat
	callSetAttr
	callReadDir
	callCreate
	callMkdir
	callMknod
	callSymlink
	callLink
	callUnlink
	callRmdir
	callRename
	callReadlink
	callReadAt
	callWriteAt
	callAllocate
	callCopyRange
	callSeek
	callGetXattr
	callSetXattr
	callListXattr
	callRemoveXattr
	callFsync
	callSync
	callCommit
	callStatFS
	callWatch
	callServe
	callServed
	callTokensChanged
	callCreateSnapshot
	callSnapshots
	callRemoveSnapshot
	callLog
	callHistory
	callKeepHistory
	callFork
	callDiff
	callRestore
	callMerge
	callConflicts
	callResolveConflict
	callSetQuota
	callQuota
)

// header stands before every body.
type header struct {
	ID     uint64 // of the call; the client's choice, never used twice in a connection
	Kind   kind
	Method method // of a call
	Code   code   // of a reply
	Text   string // of a reply with a code
}

// request holds the arguments of every method: gob sends only the fields that are not zero, so one struct costs no more
// than forty, and the table of methods stays a table.
type request struct {
	Tree    uint32 // handle of a workspace that callOpenWorkspace gave
	Origin  uint64 // number of the vfs.OriginOf the client's context; zero for none
	Ino     vfs.Ino
	Dir     vfs.Ino
	Name    string
	NewDir  vfs.Ino // of callCopyRange, the inode that is copied to
	NewName string
	Off     uint64
	NewOff  uint64
	N       uint64
	Flags   uint32
	Type    vfs.Type
	Set     *vfs.AttrSet
	Node    *vfs.NewNode
	Data    []byte
	Mount   *Mount
	Serve   *ServeOptions
	Quota   *casstore.Quota
}

// reply holds the results of every method.
type reply struct {
	Tree    uint32
	Attr    *vfs.Attr
	N       uint64
	Total   uint64
	Flag    bool
	Data    []byte
	Name    string
	Names   []string
	Entries []vfs.Dirent
	Changes []change
	StatFS  *vfs.StatFS
	Infos   []casstore.Info
	Check   *casstore.CheckReport
	Stats   *casstore.Stats
	GC      *casstore.GCReport
	Mounts  []Mount
	Served  []Served

	Snapshots []casstore.Snapshot
	Log       []casstore.LogEntry
	History   *casstore.History
	Diff      []casstore.DiffEntry
	Conflicts []reconcile.Listed
	Quota     *casstore.QuotaUse
}

// change is a vfs.Change whose origin is a number of the watching client, or zero.
type change struct {
	Kind   vfs.ChangeKind
	Ino    vfs.Ino
	Dir    vfs.Ino
	Name   string
	Origin uint64
}
