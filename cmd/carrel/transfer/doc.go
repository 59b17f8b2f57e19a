// Package transfer carries trees between a workspace, a directory of the host and a tar stream, and keeps their
// metadata.
//
// A [Source] gives the nodes of a tree one by one, a directory before what is in it; a [Sink] takes them; [Copy] joins
// the two. There is one source and one sink for each kind of place:
//
//	HostSource  -+                    +-  TreeSink
//	TarSource   -+--> Entry, Content -+-  TarSink
//	TreeSource  -+                    +-  HostSink
//
// # What is kept
//
// Names as bytes; types; permission bits with set-ID and sticky; owners by number; access and modification times in
// nanoseconds; hard links within the tree; symlink targets; extended attributes of the user, trusted and security
// namespaces; device numbers; holes. A directory's times are set when nothing more goes into it. Change times cannot be
// set anywhere, and a tar stream cannot hold sockets.
//
// # What is never lost
//
// A file that is there under a name that comes in is replaced by a rename once the new one is whole, so that an error,
// a truncated stream or a crash leaves the old one or the new one. What came in before an error stays.
//
// # What a stream cannot do
//
// A path of a tar stream cannot leave the sink: ".." is an error, and symlinks are resolved inside the sink's root.
package transfer
