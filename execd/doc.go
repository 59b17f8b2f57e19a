// Package execd runs things on workspaces and tells what happens.
//
// An exec is one run of something on one workspace. It has an id, a [Spec] that says what is to be run, a log of events
// in order, and in the end a [Result]. The [Registry] holds the execs of a daemon; a [Backend] knows how to run one kind
// of thing: execd/shell a script of bash in this process, execd/js a module, execd/container a real Linux program. A spec may
// leave the choice to Config.Choose ([Auto]).
//
//	API, command line ──▶ Registry ──▶ exec ──▶ Backend.Start(Job, Output) ──▶ Process
//	        ▲                           │                    │
//	        │                           │ barrier in, out    │ what it writes
//	        │                           ▼                    ▼
//	        └── Reader: Attach(after) ◀─────── Log: a bounded ring on disk
//
// # How to write a backend
//
// A backend that runs in this process is a function of type [Func]; the rest is done: input, signals, time limits,
// panics. Any other implements [Backend] and [Process]. Either writes what comes to its [Output] as it comes, never keeps
// it, and returns its [Exit] only when nothing that it started runs any more and nothing more will be written. It works on
// Job.Tree and nothing else of the workspace. Time limits are none of its business: the exec kills it.
//
// # What is promised
//
//   - An id is run once. Start with an id that there is returns that exec, and ErrExist when it was to do something else.
//     An exec that could not be started is forgotten, so that it may be tried again; one that was started is never
//     started again, whatever breaks.
//   - Events have numbers without holes: 1, 2, 3. Any number of readers attach, from any number. Who attaches after
//     number n is given n+1 first. What fell out of the log is told as one event of kind [Gap], never left out silently.
//   - Input has an order. Who may lose a connection gives it as a feed, by offsets, and each byte is taken once however often it is
//     given ([Exec.Feed]).
//   - The log keeps the beginning and the end of what was written (Limits in limits.go). A reader that holds ([Hold])
//     makes the program wait instead, as a pipe does, so nothing falls out before that reader has it.
//   - The last event is the exit, and after it nothing comes. Output that descendants of the program write after its own
//     end comes before it. On a mirror what the program wrote has been pushed before it, or the result says that it
//     has not.
//   - A signal n ends as exit code 128+n, a time limit as 124. Killing kills all descendants.
//
// # States
//
//	            Start                  Process.Wait, barrier out
//	starting ───────────▶ running ──────────────────────────────▶ exited ── an hour ──▶ forgotten
//	   │                     └── the daemon died ──▶ lost ─────────────── an hour ──▶ forgotten
//	   └── could not be started: forgotten at once
//
// # What survives a crash
//
// Each exec has a directory of its own: state.json, which is there as a whole when the exec starts, end.json when it ends, and the
// segments of its log. They are not fsynced: they survive the daemon, not the machine. A daemon that finds an exec that
// was running when another one died says that it is lost; its log is whole up to an event that was being written. What
// was given as environment and input is never written down. With Config.AEAD both are encrypted, but for the ids of execs, how
// many events there are in a segment and how long each is.
//
// # Locks
//
// Registry.mu before Exec.mu before Log.mu. None is held while a file is read or written, a backend or a workspace is
// called, or a reader is given an event.
package execd
