// Package tool is the frame that the commands stand in: how a body in Go becomes a command.Func, with options parsed,
// output buffered, input counted, and errors said in the words of the GNU tools.
//
// # What a body may rely on
//
// Output through Call.Out is buffered and written when the body returns; the first write that fails makes every later one
// fail with the same error, and a body hands errors of Out up. Input opened through Call.Open counts its bytes as steps and
// ends with the context. A body says that something went wrong and goes on by Call.Fault; it ends at once by returning an
// error: an Exit for a status alone, anything else is said and gives 1.
//
// A Call belongs to the goroutine of its command.
package tool
