package worker

import (
	"fmt"
	"os"
	"strconv"

	"modernc.org/quickjs"
)

// Name is what a worker is called: the program that is started by it becomes one. Descriptor 3 is its connection.
const Name = "carrel-js"

// descriptor is the connection to the daemon.
const descriptor = 3

// exitLost is the status of a worker whose daemon has gone.
const exitLost = 70

// A worker is the same program started again. It must not get as far as main, nor run what other packages do first.
func init() {
	if os.Args[0] == Name {
		serve(os.NewFile(descriptor, "daemon"))
	}
}

// serve prepares an isolate, confines this process, waits for a job and runs it. It does not return. The first argument is
// how much memory the module may use, in bytes.
func serve(f *os.File) {
	r, err := prepared()
	if err == nil {
		err = confine(r.memory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "carrel-js:", err)
		os.Exit(exitLost)
	}
	if _, err := f.Write([]byte{Ready}); err != nil {
		os.Exit(exitLost)
	}
	if r.link, r.job, err = newLink(f); err != nil {
		os.Exit(exitLost)
	}
	r.link.end(r.main())
}

func prepared() (*run, error) {
	if len(os.Args) != 2 {
		return nil, fmt.Errorf("%d arguments", len(os.Args)-1)
	}
	memory, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		return nil, err
	}
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	r := &run{vm: vm, memory: memory}
	return r, r.prepare()
}

// Ready is the byte by which a worker says that it waits for its job.
const Ready = 'r'
