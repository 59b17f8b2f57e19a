package casstore

import (
	"encoding/binary"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// appliedPush is what the store remembers of a push that was applied, so that it can be answered again. Layout, under the
// workspace, the peer and the revision of the store: id 16 bytes | sum 32 bytes | digest 32 bytes | prev | rev, uvarints.
type appliedPush struct {
	key       []byte
	id        vfs.PushID
	sum       vfs.PushSum
	digest    vfs.Digest
	prev, rev vfs.Rev // of the workspace
}

func (p *appliedPush) encode() []byte {
	digest := p.digest.Bytes()
	b := append(append(append([]byte(nil), p.id[:]...), p.sum[:]...), digest[:]...)
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.prev)), uint64(p.rev))
}

func decodeAppliedPush(b []byte) (p appliedPush, err error) {
	const fixed = len(p.id) + len(p.sum) + 32
	if len(b) < fixed {
		return p, fmt.Errorf("push record %x: %w", b, vfs.ErrCorrupt)
	}
	v, err := uvarints(b[fixed:], 2)
	if err != nil {
		return p, fmt.Errorf("push record: %w", err)
	}
	p.id, p.sum = vfs.PushID(b), vfs.PushSum(b[len(p.id):])
	p.digest = vfs.DigestOf([32]byte(b[len(p.id)+len(p.sum):]))
	p.prev, p.rev = vfs.Rev(v[0]), vfs.Rev(v[1])
	return p, nil
}

// keyOfPush is the key of a push, or, at revision zero, one before all of a peer.
func keyOfPush(ws workspaceID, peer vfs.PeerID, rev vfs.Rev) []byte {
	k := append(keyOfStanding(ws), peer[:]...)
	k[0] = keyPush
	return binary.BigEndian.AppendUint64(k, uint64(rev))
}

// pushesOf returns the pushes of a peer, the oldest first. They are read once, for up to pushPeers peers; after that only
// the committer, whose goroutine this is for, changes them.
func (w *Workspace) pushesOf(peer vfs.PeerID) ([]appliedPush, error) {
	if list, ok := w.pushes[peer]; ok {
		return list, nil
	}
	r := w.store.reader()
	defer r.Close()
	first := keyOfPush(w.id, peer, 0)
	var list []appliedPush
	err := r.scan(first[:len(first)-8], nil, true, func(key, value []byte) (bool, error) {
		p, err := decodeAppliedPush(value)
		p.key = append([]byte(nil), key...)
		list = append(list, p)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	for other := range w.pushes {
		if len(w.pushes) < pushPeers {
			break
		}
		delete(w.pushes, other)
	}
	w.pushes[peer] = list
	return list, nil
}

// remembered answers a push that was applied before.
func (j *pushJob) remembered() (known bool, err error) {
	list, err := j.tree.pushesOf(j.peer)
	for i := range list {
		p := &list[i]
		if p.id != j.push.ID {
			continue
		}
		if p.sum != j.sum {
			return true, fmt.Errorf("push %x: %w", p.id, vfs.ErrPushReused)
		}
		j.answer(p)
		return true, nil
	}
	return false, err
}

// answer is the outcome of a push that was applied.
func (j *pushJob) answer(p *appliedPush) {
	now, _ := j.tree.position()
	j.outcome = vfs.Outcome{Prev: p.prev, Position: vfs.Position{
		Cursor: vfs.Cursor{Epoch: now.Epoch, Rev: p.rev}, Oldest: now.Oldest, Digest: p.digest,
	}}
}

// remember has the revision write down that the push was applied, and where that has left the workspace.
func (j *pushJob) remember(v *revision) error {
	if j.incoming != nil {
		return j.incoming.write(v, j.tree)
	}
	before, _, _ := j.tree.knownStanding()
	after, ok := v.standings[j.tree]
	if !ok {
		after = before
	}
	j.applied = appliedPush{
		key: keyOfPush(j.tree.id, j.peer, v.rev), id: j.push.ID, sum: j.sum,
		digest: after.digest, prev: before.rev, rev: after.rev,
	}
	v.kvs = append(v.kvs, kv{key: j.applied.key, value: j.applied.encode()})
	list := j.tree.pushes[j.peer]
	for old := 0; len(list)-old >= vfs.PushMemory; old++ {
		v.kvs = append(v.kvs, kv{key: list[old].key})
	}
	return nil
}

// committed is called when the revision is durable.
func (j *pushJob) committed() {
	if j.incoming != nil {
		return
	}
	list := append(j.tree.pushes[j.peer], j.applied)
	j.tree.pushes[j.peer] = list[max(0, len(list)-vfs.PushMemory):]
	j.answer(&j.applied)
}
