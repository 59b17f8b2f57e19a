// Package printf writes as printf(1) does: the format is used again while there are arguments, numbers may be written
// as 'c, 0x1f and 017, and bash's %q, %b and %(...)T are there. The command is made of it,
// and awk, find, seq and echo take their conversions and escapes from it.
package printf
