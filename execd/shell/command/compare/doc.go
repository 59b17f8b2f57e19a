// Package compare holds diff, cmp and patch.
//
// diff finds a shortest list of edits (Myers, in linear space) over the lines as numbers, after taking off what is the
// same at both ends; what that costs is counted, and past a bound it settles for a list that is not the shortest, as
// GNU's does. Both files are held in memory, which is counted too. cmp streams.
package compare
