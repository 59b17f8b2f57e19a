package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/mcp"
	"github.com/carrelfs/carrel/execd/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newConfig() mcp.Config {
	set := tools.New(tools.Options{FS: treepath.FS{Tree: vfstest.NewTree()}})
	return mcp.Config{
		Workspace: "demo", Version: "test", History: true, Exec: true, Backends: "shell",
		Set: func(context.Context) (*tools.Set, error) { return set, nil },
	}
}

// session is a client that is connected to a server.
type session struct {
	*sdk.ClientSession
	t *testing.T
}

func connect(t *testing.T, c mcp.Config) session {
	t.Helper()
	near, far := sdk.NewInMemoryTransports()
	server, err := mcp.NewServer(c).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, near)
	t.Cleanup(func() { _ = server.Wait() }) // it ends as the client's cleanup, which runs before, closes the pipe
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func dial(t *testing.T, to sdk.Transport) session {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session{c, t}
}

// call calls a tool with arguments in JSON and returns its content, one part a line.
func (s session) call(tool, args string) (text string, failed bool) {
	s.t.Helper()
	r, err := s.CallTool(s.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		s.t.Fatalf("%s %s: %v", tool, args, err)
	}
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, c.MIMEType)
		}
	}
	return strings.Join(parts, "\n"), r.IsError
}

func (s session) names() (names []string) {
	s.t.Helper()
	for tool, err := range s.Tools(s.t.Context(), nil) {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func TestTools(t *testing.T) {
	all := "delete diff edit exec find grep ls read snapshot write"
	for _, tt := range []struct {
		change func(*mcp.Config)
		want   string
	}{
		{func(*mcp.Config) {}, all},
		{func(c *mcp.Config) { c.ReadOnly = true }, "diff find grep ls read"},
		{func(c *mcp.Config) { c.Exec, c.History = false, false }, "delete edit find grep ls read write"},
	} {
		c := newConfig()
		tt.change(&c)
		if got := strings.Join(connect(t, c).names(), " "); got != tt.want {
			t.Errorf("tools %q, want %q", got, tt.want)
		}
	}
}

func TestCalls(t *testing.T) {
	s := connect(t, newConfig())
	for _, tt := range []struct {
		tool, args, want string
		failed           bool
	}{
		{"write", `{"path":"a/b.txt","text":"one\ntwo\n"}`, `{"made":true,"path":"/a/b.txt","size":8}`, false},
		{"write", `{"path":"/p.png","base64":"iVBORw0KGgo="}`, `"size":8`, false},
		{"write", `{"path":"/bin","base64":"AAE="}`, `"size":2`, false},
		{"read", `{"path":"/a/b.txt"}`, "one\ntwo\n\n[/a/b.txt, 8 bytes; lines 1 to 2]", false},
		{"read", `{"path":"/a/b.txt","lines":1}`, "one\n\n[/a/b.txt, 8 bytes; lines 1 to 1; more from line 2]", false},
		{"read", `{"path":"/p.png"}`, "image/png\n[/p.png, 8 bytes; image/png]", false},
		{"read", `{"path":"/bin"}`, "not text", true},
		{"read", `{"path":"/bin","base64":true}`, "AAE=\n[/bin, 2 bytes; application/octet-stream]", false},
		{"read", `{"path":"/none"}`, "no such file", true},
		{"read", `{"path":7}`, "", true},
		{"edit", `{"path":"/a/b.txt","edits":[{"old":"two","new":"2"}]}`, "-two\n+2\n", false},
		{"edit", `{"path":"/a/b.txt","edits":[{"old":"two","new":"2"}]}`, "the old text is not in the file", true},
		{"ls", `{}`, `"name":"a","type":"dir"`, false},
		{"find", `{"glob":"*.txt"}`, `{"paths":["/a/b.txt"]}`, false},
		{"grep", `{"pattern":"^o"}`, `[{"line":1,"path":"/a/b.txt","text":"one"}]`, false},
		{"delete", `{"path":"/a"}`, "not empty", true},
		{"delete", `{"path":"/a","recursive":true}`, `"type":"dir"`, false},
		{"diff", `{}`, "no state to compare with", true},
		{"snapshot", `{"name":"s"}`, "not supported", true},
		{"exec", `{"command":"true","input":{"a":[1]}}`, "nothing can be run", true},
	} {
		got, failed := s.call(tt.tool, tt.args)
		if failed != tt.failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %q, failed %t, want %q", tt.tool, tt.args, got, failed, tt.want)
		}
	}
}

// bearer shows a token with every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(mcp.Handler(mcp.NewServer(newConfig()), "s3cret", nil))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	dialHTTP := func(token string) (*sdk.ClientSession, error) {
		to := &sdk.StreamableClientTransport{Endpoint: server.URL, MaxRetries: -1,
			HTTPClient: &http.Client{Transport: bearer{token, transport}}}
		return sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), to, nil)
	}
	for _, token := range []string{"", "wrong", "s3cret2"} {
		if c, err := dialHTTP(token); err == nil {
			_ = c.Close()
			t.Errorf("token %q is good", token)
		}
	}
	c, err := dialHTTP("s3cret")
	if err != nil {
		t.Fatal(err)
	}
	s := session{c, t}
	if got, failed := s.call("write", `{"path":"/f","text":"x"}`); failed {
		t.Error(got)
	}
	if got, failed := s.call("read", `{"path":"/f"}`); failed || !strings.HasPrefix(got, "x\n") {
		t.Error(got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A server without a token lets nobody in.
func TestHTTPNoToken(t *testing.T) {
	h := mcp.Handler(mcp.NewServer(newConfig()), "", nil)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Authorization", "Bearer ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("status %d", w.Code)
	}
}
