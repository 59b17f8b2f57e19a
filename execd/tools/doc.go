// Package tools is a workspace as tools for agents: read, write, edit, list, find, search, delete, compare, run,
// snapshot. A model calls them with arguments in JSON; execd/mcp offers them by the Model Context Protocol.
//
// # What is promised
//
//   - Every result is bounded (limits.go), so that none floods a model. What did not fit is told, and how to have it:
//     each result with more to come has a field that begins with Next, to be given back in the next call.
//   - Paths are those of the workspace, or below the root that the [Set] was given; neither ".." nor a symlink leads out.
//   - [Set.Edit] changes exactly what it was told to or nothing: each old text must be in exactly one place of the file as
//     it was. Mode, owner, attributes, a byte order mark and line ends stay.
//   - A set that is read-only refuses every change with vfs.ErrReadOnly, before anything else is looked at.
//   - Changes through one set happen one after the other: two edits of one file at the same time are both in it.
//
// Tools work on the live tree: what others do meanwhile, through a mount, an exec or a mirror, is seen at once. An edit
// that meets a change that came between its reading and its writing fails with vfs.ErrBusy.
//
// # Errors
//
// They wrap the sentinels of vfs and the few of errors.go. Their texts are for the model: they say what to do.
//
// # What survives a crash
//
// What the tree promises. Nothing is kept here between calls.
package tools
