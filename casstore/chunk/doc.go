// Package chunk names, splits and compresses the bytes of files, and keeps the list of what a file is made of.
//
// A chunk is a run of file bytes, named by the SHA-256 of its plain bytes ([ID]). A manifest is the ordered list of a
// file's chunks and holes ([Manifest]). The package does no I/O, starts no goroutines and keeps no state but pools of
// buffers; its values may be used from many goroutines unless their comments say otherwise.
//
// # Promises
//
//   - Equal bytes have equal names, and equal lists have equal encodings: every encoding here is canonical, and a
//     decoder takes only what the encoder makes.
//   - A cut depends only on the bytes since the cut before it ([Cutter]), so splitting may start again at any cut.
//   - No input makes a decoder panic, or take memory out of proportion to the input and the limits in limits.go.
//
// # Encodings
//
// An uvarint is the unsigned varint of encoding/binary, in its shortest form. Everything else is bytes.
//
// A list of entries, as it stands in a record of up to [MaxInline] entries, and in a leaf node:
//
//	entries := count:uvarint entry*count
//	entry   := head:uvarint [id:32]          head = length<<1 | hole; the id follows only when hole is 0
//
// The length is at least 1, that of a chunk at most [MaxSize]; two holes never follow each other; the lengths add up to
// at most [MaxFileSize].
//
// Longer lists are trees of nodes. A node is itself a chunk: its id is the SHA-256 of these bytes.
//
//	node  := 'C' 'N' version:1 level:1 body   version = 1
//	body  := entries                          at level 0, a leaf
//	       | count:uvarint child*count        at level 1 and above
//	child := id:32 bytes:uvarint entries:uvarint
//
// The bytes and entries of a child say how much of the file, and how many entries, lie below it. Entries are gathered
// into leaves from left to right. A node ends after the item with which it holds
//
//   - at least [MinNode] items, when the item is no hole and the last byte of its id is zero, or
//   - [MaxNode] items,
//
// and with the last item of all. The children of each level are gathered by the same rule, until one node is left: the
// root. So the tree of a list depends only on the list, and a change in one place changes about one node a level.
//
//	root := id:32 level:1 entries:uvarint bytes:uvarint stored:uvarint
//
// names a tree in a record: its root node and level, the entries and bytes of the whole list, and how many of those
// bytes are not in holes.
package chunk
