package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/carrelfs/carrel/fusefs"
)

func main() {
	fusefs.HelperMain()
	os.Exit(run())
}

// run is main without the exit. The first signal asks the command to end, the second ends the process.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return newProgram(os.Stdin, os.Stdout, os.Stderr).run(ctx, os.Args)
}
