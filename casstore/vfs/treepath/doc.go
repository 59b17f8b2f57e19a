// Package treepath is a workspace's tree by path: it walks paths, and it offers what programs know as files.
//
// A path is resolved inside the tree alone: a symlink that is absolute starts again at the walk's root, ".." at the
// root stays there, and nothing ever touches the host's own files. That is chroot(2)'s view, computed over vfs.Tree.
//
// # Two layers
//
// [Walker] turns a path into an inode. [FS] adds who asks (owner of what is made, permission checks, umask) and from
// which directory, and opens [File]s with an offset. The exec backends and whatever else serves files by path to
// somebody without a mount use FS.
//
// # What holds when others change the tree
//
// Nothing is locked between the steps of a walk: what another caller renames meanwhile may make it fail with
// vfs.ErrNotExist or arrive at a node that has another name by then, as path_resolution(7) allows. A File is an inode:
// renaming or removing its name does not disturb it.
//
// # What survives a crash
//
// What the tree promises for its own calls; nothing here keeps bytes back.
package treepath
