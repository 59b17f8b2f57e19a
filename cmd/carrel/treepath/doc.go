// Package treepath walks paths in a workspace's tree.
//
// A path is resolved inside the tree alone: a symlink that is absolute starts again at the walk's root, ".." at the
// root stays there, and nothing ever touches the host's own files. That is chroot(2)'s view, computed over vfs.Tree.
//
// Nothing is locked between the steps of a walk: what another caller renames meanwhile may make it fail with
// vfs.ErrNotExist or arrive at a node that has another name by then, as path_resolution(7) allows.
package treepath
