package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/carrelfs/carrel/casstore/control"
)

// agent is the official client, connected to a process of this program.
type agent struct {
	*sdk.ClientSession
	t *testing.T
}

func newAgent(t *testing.T, store string, args ...string) agent {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{"carrel", "mcp", "--store", store}, args...)
	cmd.Env = append(cmd.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).
		Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: scriptPatience}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return agent{c, t}
}

// does calls a tool with arguments in JSON, and requires parts of what comes.
func (a agent) does(tool, args string, want ...string) (text string) {
	a.t.Helper()
	text, failed := a.call(tool, args)
	for _, part := range want {
		if failed || !strings.Contains(text, part) {
			a.t.Errorf("%s %s: failed %t, want %q in\n%s", tool, args, failed, part, text)
		}
	}
	return text
}

func (a agent) fails(tool, args, want string) {
	a.t.Helper()
	if text, failed := a.call(tool, args); !failed || !strings.Contains(text, want) {
		a.t.Errorf("%s %s: failed %t, want %q in\n%s", tool, args, failed, want, text)
	}
}

func (a agent) call(tool, args string) (text string, failed bool) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		a.t.Fatalf("%s %s: %v", tool, args, err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			text += c.Text + "\n"
		}
	}
	return text, r.IsError
}

func (a agent) leave() {
	a.t.Helper()
	if err := a.Close(); err != nil {
		a.t.Error(err)
	}
}

// An agent makes a small project, with no store there before: it writes, edits, searches, runs the tests, keeps what it
// has, and looks at what it did.
func TestAgentSession(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	a := newAgent(t, store, "demo")
	a.does("write", `{"path":"/greet/greet.sh","text":"greet() {\n  echo \"helo $1\"\n}\n"}`, `"made":true`)
	a.does("write", `{"path":"/test.sh","executable":true,
		"text":"#!/bin/sh\n. ./greet/greet.sh\ntest \"$(greet you)\" = 'hello you' && echo passed\n"}`, `"size"`)
	a.does("snapshot", `{"name":"first"}`, `"revision"`)
	a.does("find", `{}`, `["/greet/","/greet/greet.sh","/test.sh"]`)
	a.does("exec", `{"command":"./test.sh"}`, `"status":"exited"`, `"code":1`)
	a.does("grep", `{"pattern":"helo"}`, `"line":2`)
	a.fails("edit", `{"path":"/greet/greet.sh","edits":[{"old":"hullo","new":"hello"}]}`, "the old text is not in the file")
	a.does("edit", `{"path":"/greet/greet.sh","edits":[{"old":"helo","new":"hello"}]}`, "-  echo \"helo $1\"\n+  echo \"hello $1\"\n")
	a.does("exec", `{"command":"./test.sh && echo done > log"}`, `"code":0`, `passed`)
	a.does("read", `{"path":"/log"}`, "done\n")
	a.does("exec", `{"source":"import fs from 'node:fs'; export default (x) => fs.readFileSync(x.path, 'utf8')","input":{"path":"log"}}`,
		`"value":"done\n"`)
	a.does("diff", `{"from":"first"}`, "modified file /greet/greet.sh\nadded file /log", "+  echo \"hello $1\"\n")
	a.does("diff", `{"names":true}`, "added file /greet/greet.sh", "added file /test.sh")
	a.does("delete", `{"path":"/log"}`, `"type":"file"`)
	a.leave()

	// What was done is in the store, for others; who may only read has no other tools.
	if status, out, errs := runIn(t.Context(), store, "", ownerPatience, "cat", "demo:/greet/greet.sh"); status != exitDone ||
		!strings.Contains(out, "hello") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	b := newAgent(t, store, "demo@first")
	b.does("read", `{"path":"/greet/greet.sh"}`, "helo")
	if _, err := b.CallTool(t.Context(), &sdk.CallToolParams{Name: "write", Arguments: json.RawMessage(`{"path":"/x"}`)}); err == nil {
		t.Error("a reader may write")
	}
	b.leave()
	c := newAgent(t, store, "--root", "/greet", "demo")
	c.does("ls", `{}`, `"name":"greet.sh"`)
	c.fails("read", `{"path":"../test.sh"}`, "no such file")
	c.leave()
}

// A daemon that dies is followed by another, and the session goes on.
func TestAgentOutlivesDaemon(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	a := newAgent(t, store, "demo")
	a.does("write", `{"path":"/f","text":"kept"}`)
	a.does("snapshot", `{"name":"s"}`) // and so it is durable
	owner, err := control.Dial(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	pid := owner.Owner().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = owner.Close()
	a.does("read", `{"path":"/f"}`, "kept")
	a.does("exec", `{"command":"cat f"}`, "kept", `"code":0`)
	a.leave()
}
