package syncwire

import (
	"math"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// whereMode says which position is asked for.
type whereMode uint8

const (
	whereNow     whereMode = 0 // that of the newest revision
	whereAfter   whereMode = 1 // the first above Rev, however long that takes
	whereBarrier whereMode = 2 // one that holds everything written before
)

// where asks for a position.
type where struct {
	numbered
	Mode whereMode
	Rev  vfs.Rev
}

func (*where) frame() frameType { return frameWhere }

func (m *where) fields(c *coder) {
	reqField(c, &m.Req)
	number(c, "mode", &m.Mode, uint64(whereBarrier))
	revField(c, "rev", &m.Rev)
}

type position struct {
	numbered
	Position vfs.Position
}

func (*position) frame() frameType { return framePosition }

func (m *position) fields(c *coder) {
	reqField(c, &m.Req)
	positionFields(c, &m.Position)
}

// get asks for records by key.
type get struct {
	numbered
	Keys []vfs.Key
}

func (*get) frame() frameType { return frameGet }

func (m *get) fields(c *coder) {
	reqField(c, &m.Req)
	list(c, "key", &m.Keys, vfs.MaxGetKeys, keyFields)
}

// got is an answer to get, or a part of it.
type got struct {
	numbered
	Rev     vfs.Rev
	More    bool
	Records []vfs.Record
}

func (*got) frame() frameType { return frameGot }

func (m *got) fields(c *coder) {
	reqField(c, &m.Req)
	revField(c, "rev", &m.Rev)
	flagField(c, "more", &m.More)
	list(c, "record", &m.Records, vfs.MaxGetKeys, recordFields)
}

// sums asks for the digests of intervals.
type sums struct {
	numbered
	Ranges []vfs.InoRange
}

func (*sums) frame() frameType { return frameSums }

func (m *sums) fields(c *coder) {
	reqField(c, &m.Req)
	list(c, "range", &m.Ranges, vfs.MaxSumRanges, rangeFields)
}

type summed struct {
	numbered
	Rev     vfs.Rev
	Digests []vfs.Digest
}

func (*summed) frame() frameType { return frameSummed }

func (m *summed) fields(c *coder) {
	reqField(c, &m.Req)
	revField(c, "rev", &m.Rev)
	list(c, "sum", &m.Digests, vfs.MaxSumRanges, digestField)
}

// lease asks for inode numbers.
type lease struct {
	numbered
	N uint64
}

func (*lease) frame() frameType { return frameLease }

func (m *lease) fields(c *coder) {
	reqField(c, &m.Req)
	number(c, "n", &m.N, vfs.MaxLease)
}

type leased struct {
	numbered
	Range vfs.InoRange
}

func (*leased) frame() frameType { return frameLeased }

func (m *leased) fields(c *coder) {
	reqField(c, &m.Req)
	rangeFields(c, &m.Range)
}

// missing asks which chunks the server does not have.
type missing struct {
	numbered
	IDs []chunk.ID
}

func (*missing) frame() frameType { return frameMissing }

func (m *missing) fields(c *coder) {
	reqField(c, &m.Req)
	list(c, "chunk", &m.IDs, vfs.MaxChunkIDs, idField)
}

type missed struct {
	numbered
	IDs []chunk.ID
}

func (*missed) frame() frameType { return frameMissed }

func (m *missed) fields(c *coder) {
	reqField(c, &m.Req)
	list(c, "chunk", &m.IDs, vfs.MaxChunkIDs, idField)
}

// attach asks for a feed, or for one reading.
type attach struct {
	Since vfs.Cursor
	From  vfs.Ino // where a snapshot that was cut off goes on; zero when none was
	Range vfs.InoRange
	Once  bool
}

func (*attach) frame() frameType { return frameAttach }

func (m *attach) fields(c *coder) {
	cursorFields(c, &m.Since)
	inoField(c, "from", &m.From)
	rangeFields(c, &m.Range)
	flagField(c, "once", &m.Once)
}

// begin says what the records up to the next update are.
type begin struct {
	Since vfs.Rev // zero: a snapshot
	First vfs.Ino // of a snapshot, the lowest inode number in it
}

func (*begin) frame() frameType { return frameBegin }

func (m *begin) fields(c *coder) {
	revField(c, "since", &m.Since)
	inoField(c, "first", &m.First)
}

type records struct{ Records []vfs.Record }

func (*records) frame() frameType { return frameRecords }

func (m *records) fields(c *coder) { list(c, "record", &m.Records, maxRecords, recordFields) }

// update ends what began, and says at which revision all of it is so.
type update struct {
	Position vfs.Position
	Own      []vfs.PushID // pushes of this session that are in it, and whose records were left out
}

func (*update) frame() frameType { return frameUpdate }

func (m *update) fields(c *coder) {
	positionFields(c, &m.Position)
	list(c, "own", &m.Own, maxOwn, pushIDField)
}

func pushIDField(c *coder, v *vfs.PushID) { c.fixed("push", v[:]) }

// push begins a push. As many chunks and records as it says follow, in chunk and changes frames, chunks first.
type push struct {
	numbered
	ID      vfs.PushID
	Chunks  uint32
	Records uint32
	Bytes   uint32 // of names and values
}

func (*push) frame() frameType { return framePush }

func (m *push) fields(c *coder) {
	reqField(c, &m.Req)
	pushIDField(c, &m.ID)
	number(c, "chunks", &m.Chunks, maxPushChunks)
	number(c, "records", &m.Records, vfs.MaxPushRecords)
	number(c, "bytes", &m.Bytes, vfs.MaxPushBytes)
}

// changes are records of a push.
type changes struct{ Records []vfs.PushRecord }

func (*changes) frame() frameType { return frameChanges }

func (m *changes) fields(c *coder) {
	list(c, "record", &m.Records, maxRecords, pushRecordFields)
}

// outcome answers a push.
type outcome struct {
	numbered
	Outcome vfs.Outcome
}

func (*outcome) frame() frameType { return frameOutcome }

func (m *outcome) fields(c *coder) {
	reqField(c, &m.Req)
	positionFields(c, &m.Outcome.Position)
	revField(c, "prev", &m.Outcome.Prev)
	list(c, "stale", &m.Outcome.Stale, vfs.MaxStale, recordFields)
	list(c, "missing", &m.Outcome.Missing, vfs.MaxChunkIDs, idField)
}

// fetch asks for chunks. Those that are there come in chunk frames, then fetched.
type fetch struct {
	numbered
	IDs []chunk.ID
}

func (*fetch) frame() frameType { return frameFetch }

func (m *fetch) fields(c *coder) {
	reqField(c, &m.Req)
	list(c, "chunk", &m.IDs, vfs.MaxChunkIDs, idField)
}

// chunkMessage is a chunk in stored form.
type chunkMessage struct{ Chunk vfs.Chunk }

func (*chunkMessage) frame() frameType { return frameChunk }

func (m *chunkMessage) fields(c *coder) {
	idField(c, &m.Chunk.ID)
	number(c, "codec", &m.Chunk.Codec, math.MaxUint8)
	number(c, "plain", &m.Chunk.PlainLen, chunk.MaxSize)
	c.lastBlock("stored", &m.Chunk.Stored, maxStored)
}

type fetched struct{ numbered }

func (*fetched) frame() frameType  { return frameFetched }
func (m *fetched) fields(c *coder) { reqField(c, &m.Req) }

// store announces chunks to be kept for pushes to come.
type store struct {
	numbered
	Chunks uint32
}

func (*store) frame() frameType { return frameStore }

func (m *store) fields(c *coder) {
	reqField(c, &m.Req)
	number(c, "chunks", &m.Chunks, maxPushChunks)
}

type stored struct{ numbered }

func (*stored) frame() frameType  { return frameStored }
func (m *stored) fields(c *coder) { reqField(c, &m.Req) }
