// Package token keeps the bearer tokens of a store and decides on them.
//
// A token is a line of text that its holder shows to a server:
//
//	carrel_ID_SECRET      ID: 64 random bits in base32; SECRET: 256 random bits in base64url
//
// The file tokens.json in the store's directory, of mode 0600, says of each token for whom it is, what it allows, on which
// workspaces and until when, and holds the SHA-256 of its secret. Plain SHA-256 is enough: a slow hash makes guessing
// dear where people choose secrets, and nobody guesses 256 random bits. Who reads the file can let nobody in.
//
// A token is good for names of workspaces: for what has the name when a session begins.
//
// # Processes
//
// Any process changes the file ([Create], [Remove]): under a lock on the directory, and by replacing it, so a reader sees
// the old or the new one. The process that serves has a [Verifier]. It looks before each decision whether the file was
// replaced, so nobody begins a session with a removed token; sessions that run are ended by [Verifier.Reload], which who
// removed a token asks for over the control socket.
package token
