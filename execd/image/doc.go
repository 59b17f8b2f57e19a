// Package image makes root filesystems for containers of OCI images: a layout directory, or a tarball of one or of what
// "docker save" writes (OCI Image Format Specification 1.1, image-layout.md, layer.md).
//
//	PATH ── source: blobs by name ── manifest, config ── layers ──▶ DIR/<digest of the config>/root
//	         directory or tarball     digests checked     in order
//
// A [Cache] unpacks an image once. The config names the digest of every layer's plain bytes, so its own digest stands for
// all of the tree; each blob is read to its end and compared before the tree gets its name, and one that is not what it says,
// or whose layers are hostile, leaves nothing behind. What the tree is shared by only reads it.
//
// # What is unpacked, and what is not
//
// Directories, files, symlinks and hard links, with modes, times, and owners when this process is root; whiteouts take away
// what lower layers have. Names are resolved below the root as the container would see them, an absolute symlink too, and
// every operation goes through [os.Root], so that no archive reaches anything else. Device nodes and FIFOs are left out, and
// set-user-ID bits and extended attributes: containers have no use for any. An archive that names what is outside of the
// root, or that goes over a bound of limits.go, is refused with ErrInvalid or ErrTooBig; one with another digest than it
// should have with ErrCorrupt.
//
// The cache is for one process at a time. Nothing is removed from it but what a process that died has left half done.
package image
