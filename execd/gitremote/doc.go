// Package gitremote lends scripts the host's way to git repositories that are not in their workspace, as far as a list
// goes: by HTTP and HTTPS, and in directories of the host.
//
// A script has no network, and names no file of the host. What it can do is to ask its git for a repository by URL; whether
// that is on the list is decided here, for every request that is made of it, those that a server redirects to included. An
// empty list is for none.
//
// # The list
//
// An entry is a URL, "https://host/path", "http://host:port/path" or "file:///path". It lets scripts reach the repository
// there and what is below it: a whole part of a path at a time, so that https://host/a allows https://host/a/b but neither
// https://host/ab nor https://host/a/../b. A user and a password in the URL of a script are its own business; they are not
// part of the list.
//
// What a directory of the host leads to through symlinks must be below an entry as well. There the host's own git does the
// work, with the hooks that the repository has.
package gitremote
