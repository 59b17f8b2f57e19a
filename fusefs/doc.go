// Package fusefs puts a vfs.Tree into the kernel.
package fusefs
