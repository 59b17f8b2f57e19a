// Package pack keeps chunks in append-only files beside the version store. The version store holds the index, from the
// id of a chunk to its [Loc]; packs hold the bytes, and the index can be rebuilt from them ([Set.Scan]).
//
// # Files
//
// A directory holds packs, "00000001.pack" and on. All integers are big-endian.
//
//	pack file
//	┌─────────────────┬─────────┬─────────┬─────────┬ ─ ─
//	│ header, 16 B    │ frame   │ frame   │ frame   │
//	└─────────────────┴─────────┴─────────┴─────────┴ ─ ─
//
//	header of a file
//	 0        8         12        16
//	┌────────┬─────────┬─────────┐
//	│ magic  │ version │ number  │      magic "CARRELPK", version 1, the number in the file's name
//	└────────┴─────────┴─────────┘
//
//	frame
//	 0       4       5       6       8           12           16      48      52
//	┌───────┬───────┬───────┬───────┬───────────┬────────────┬───────┬───────┬─ ─ ─ ─
//	│ magic │ codec │ flags │ zero  │ plain len │ stored len │ id    │ crc   │ payload
//	└───────┴───────┴───────┴───────┴───────────┴────────────┴───────┴───────┴─ ─ ─ ─
//
// The magic of a frame is "CHNK"; the codec is a [chunk.Codec]; the lengths are in bytes, of the plain bytes and of the
// payload, which is the chunk in stored form. The crc is the CRC-32C of the 48 bytes before it and the payload.
// Flag 1 marks a dead frame: the place of a write that failed. Its payload is garbage, its crc covers only the 48 bytes
// before it, its codec, plain length and id are zero. No other flag is used. The payload of a compressed chunk is shorter
// than the plain bytes, so the length of a frame tells whether it is raw.
//
// # Encrypted packs
//
// The packs of a set with a key have version 2. Before each of their frames stand 16 random bytes, its nonce. The id and the
// payload are encrypted: combined, by exclusive or, with the stream of AES-256 in counter mode that has the nonce as its first
// counter, first the id, then the payload. The crc covers the nonce as well, behind the encrypted payload. Of a dead frame nothing
// is encrypted, and its nonce is as it happens to be. Locations are those of the frames, without their nonces.
//
// So the files say how many chunks there are, and how long each is and its stored form; not which they are, nor whether one was
// there before. Who can write to the files can change bits of a chunk without the key, as a crc is no signature.
//
// # Promises
//
//   - Append either returns where the frame is, or an error, and then the frame is not in the pack. A full disk is
//     ENOSPC from Append, never a surprise later, and never damages what is there.
//   - Once Sync has returned nil, every Append that had returned before it is durable.
//   - A read gives the bytes that were appended under the id, or an error that wraps [chunk.ErrCorrupt].
//
// # What is verified
//
// The SHA-256 of the plain bytes is verified by [Set.Read] and [Set.ReadChunk], for whoever accepts a chunk, hands it on,
// keeps it for others to rely on, or checks a store. [Set.ReadPlain] and [Set.ReadRaw], which serve the reads of files,
// verify the crc. That is enough against what a disk does to bytes at rest: CRC-32C misses no error of up to 32 bits in a
// row, and of others, in at most 512 KiB, one in four thousand million; filesystems rely on it for blocks of that kind.
// It costs a fifteenth of the SHA-256. Against somebody who can write to the packs neither helps, as he can write other
// manifests as well.
//
// Once a frame's crc has been verified, a caller may have parts of a raw chunk read by themselves, 4 KiB instead of 128
// for a page of a file. Damage that the disk does after that is found by the next read of all of the chunk, by a check,
// and by the next process.
//
// # After a crash
//
// A pack may have a tail that is torn, as long as what was never synced. The store keeps, with what it commits, the
// durable ends of all packs ([Set.Ends]) and gives them back on opening ([Set.TruncateTo]): what is behind them is cut
// off. Below an end every frame is whole, since Sync waits for the writes in flight before it takes an end.
//
// # Locks
//
//	Set.growMu   beginning, lengthening and sealing packs; appends where the disk cannot reserve space
//	  Set.mu       all fields; never held across I/O
//
// No goroutine is started: whoever calls does the work. Of concurrent Syncs one runs, and all others wait for the next.
package pack
