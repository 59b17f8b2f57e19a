package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd/api"
)

// An exec that has ended does not want standard input any more, and nothing is said of that.
func TestInputAfterTheEnd(t *testing.T) {
	var stderr bytes.Buffer
	x := api.NewClient(func(ctx context.Context) (net.Conn, error) { return nil, ctx.Err() })
	defer x.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &follower{program: newProgram(strings.NewReader("text"), io.Discard, &stderr), execs: x, id: "x"}
	f.feed(ctx)
	if stderr.Len() > 0 {
		t.Error(stderr.String())
	}
}
