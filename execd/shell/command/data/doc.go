// Package data holds the commands for structured data: jq and yq, on the language of gojq, and html-to-markdown.
//
// gojq keeps objects as Go maps, which have no order. The order in which keys are printed is put back from where it can be
// known: an object with just the keys of one that was read has their order there, one whose keys stand in the program has
// the program's, any other is ordered by where its keys were first seen. Memory of the shapes of objects is bounded.
package data
