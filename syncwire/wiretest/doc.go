// Package wiretest helps to write and to prove implementations of vfs.Authority: [Memory] is a small one, [Run] is the
// kit that every implementation passes.
//
// The kit is run by the store, by [Memory], and by the client of package syncwire, which is an authority too: that at the
// other end of its connection. That the kit finds what is wrong is tested by planting faults in [Memory], one at a time.
package wiretest
