// Package worker is what runs a JavaScript module: the process that package js starts for it, and the messages between the
// two. A program that imports it becomes a worker when it is started by the name carrel-js.
//
//	daemon: js.Backend ◀── descriptor 3: gob, Job, then Call and Reply ──▶ worker: engine, one isolate, one job
//
// A worker makes its isolate, gives up every right that it does not need (filter.go), says that it is ready and waits for
// its one job. It says that it has it, and ends with it. What the module asks of the world goes to the daemon as a Call:
// files, modules, output, standard input. Timers are its own.
//
// What a module finds is in the folder prelude, in JavaScript (prelude.go); loop.go calls into it. Most of that goes through
// modernc.org/quickjs; engine.go goes to the engine behind it, for what that cannot do: modules with an import.meta and
// with node's error codes, and promises that are rejected while nobody looks at them.
//
// Everything of the engine is for one goroutine. Another reads what the daemon sends.
package worker
