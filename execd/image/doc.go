// Package image makes root filesystems for containers of OCI images: a layout directory, or a tarball of one or of what
// "docker save" writes (OCI Image Format Specification 1.1, image-layout.md, layer.md).
//
//	PATH ── source: blobs by name ── manifest, config ── layers ──▶ DIR/sha256-<of the config>/root
//	         directory or tarball     digests checked     in order                            /image.json
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
// root, or that goes over a bound of limits.go, is refused with ErrInvalid, ErrNameTooLong or ErrTooBig; one with another
// digest than it should have with ErrCorrupt; one that would take more than half of what the disk has left with ErrNoSpace.
//
// # How long an image is kept
//
// As long as somebody has it, from Unpack or Hold to the release. Then until nobody has used it for [KeepFor], or until all
// together are more than [KeepBytes]: those go first that were not used for longest. When a new one finds no space, all go
// that nobody uses. The time of a directory tells when its image was used last.
//
// # What survives a crash
//
// A directory has the name of its image, and its image.json, when all that is in it is on the disk. An image that is
// unpacked, and one that is removed, has a name that begins with ".new-": whatever has such a name is taken away when the
// next Cache is opened. The cache is for one process at a time.
//
// # Locks
//
// A slot is the lock of one image on the disk, and nothing waits for one under another. slots.mu and temps.mu are held for
// moments, and not across I/O.
package image
