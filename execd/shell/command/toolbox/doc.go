// Package toolbox puts the commands of all packages into one table.
//
// Its tests hold each command to what the real one did: see the transcripts in testdata.
package toolbox
