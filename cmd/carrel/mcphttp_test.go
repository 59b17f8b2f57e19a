package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// certificate writes a certificate for this machine and its key, and returns who trusts it.
func certificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, certErr := x509.CreateCertificate(rand.Reader, template, template, public, private)
	key, keyErr := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(certErr, keyErr); err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	return trusted
}

// mcpServer is a process that serves agents, and where.
type mcpServer struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	said sync.WaitGroup // all that it says was passed on
}

func serveMCP(t *testing.T, args ...string) *mcpServer {
	t.Helper()
	s := &mcpServer{t: t, cmd: exec.Command("/proc/self/exe")}
	s.cmd.Args = append([]string{"carrel", "mcp"}, args...)
	s.cmd.Env = append(s.cmd.Environ(), "GORACE=atexit_sleep_ms=0")
	said, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if m := regexp.MustCompile(`serving at (https?://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			s.url = m[1]
			break
		}
	}
	if s.url == "" {
		t.Fatalf("it says no address: %v, %v", lines.Err(), s.cmd.Wait())
	}
	s.said.Go(func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	})
	return s
}

// end asks the process to end, which is no failure.
func (s *mcpServer) end() {
	s.t.Helper()
	err := s.cmd.Process.Signal(unix.SIGTERM)
	s.said.Wait()
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		s.t.Error(err)
	}
}

// shownToken shows a token with every request.
type shownToken struct {
	token string
	next  http.RoundTripper
}

func (s shownToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return s.next.RoundTrip(r)
}

func (s *mcpServer) dial(token string, roots *x509.CertPool) (*sdk.ClientSession, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	s.t.Cleanup(transport.CloseIdleConnections)
	to := &sdk.StreamableClientTransport{Endpoint: s.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: shownToken{token, transport}}}
	return sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(s.t.Context(), to, nil)
}

// An agent that connects works by TLS, with the token that the server made, and nobody else does.
func TestAgentByHTTPS(t *testing.T) {
	dir := t.TempDir()
	tokenFile, cert, key := filepath.Join(dir, "token"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	trusted := certificate(t, cert, key)
	args := []string{"--store", filepath.Join(dir, "store"), "--http", "127.0.0.1:0", "--token-file", tokenFile, "--tls-cert", cert, "--tls-key", key, "demo"}
	s := serveMCP(t, args...)
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(tokenFile); err != nil || fi.Mode().Perm() != 0o600 || len(token) < 20 {
		t.Errorf("the token file: %v, %v, %d bytes", fi.Mode(), err, len(token))
	}
	good := strings.TrimSpace(string(token))
	c, err := s.dial(good, trusted)
	if err != nil {
		t.Fatal(err)
	}
	a := agent{c, t}
	a.does("write", `{"path":"/f","text":"by TLS"}`, `"made":true`)
	a.does("exec", `{"command":"cat f"}`, "by TLS", `"code":0`)
	for what, dial := range map[string]func() (*sdk.ClientSession, error){
		"no token":           func() (*sdk.ClientSession, error) { return s.dial("", trusted) },
		"another token":      func() (*sdk.ClientSession, error) { return s.dial(good+"x", trusted) },
		"who does not trust": func() (*sdk.ClientSession, error) { return s.dial(good, x509.NewCertPool()) },
		"who speaks no TLS": func() (*sdk.ClientSession, error) {
			plain := &mcpServer{t: t, url: strings.Replace(s.url, "https:", "http:", 1)}
			return plain.dial(good, trusted)
		},
	} {
		if c, err := dial(); err == nil {
			_ = c.Close()
			t.Errorf("%s: is let in", what)
		}
	}
	a.leave()
	s.end()

	// The token that is there is the token of the next one.
	s = serveMCP(t, args...)
	if c, err = s.dial(good, trusted); err != nil {
		t.Fatal(err)
	}
	b := agent{c, t}
	b.does("read", `{"path":"/f"}`, "by TLS")
	b.leave()
	s.end()
}

// A token does not go over a network as it is, and TLS is all of it or nothing.
func TestMCPUsage(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--http", "0.0.0.0:0", "--token-file", "t"}, "the token would go over the network as it is"},
		{[]string{"--http", "example.com:1", "--token-file", "t"}, "the token would go over the network as it is"},
		{[]string{"--http", "localhost:0"}, "--http and --token-file go together"},
		{[]string{"--token-file", "t"}, "--http and --token-file go together"},
		{[]string{"--http", "localhost:0", "--token-file", "t", "--tls-cert", "c"}, "--tls-cert and --tls-key go together"},
		{[]string{"--tls-cert", "c", "--tls-key", "k"}, "go together"},
	} {
		status, _, stderr := runIn(t.Context(), dir, "", time.Second, append([]string{"mcp"}, tt.args...)...)
		if status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: status %d, %s", tt.args, status, stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("it has made %q", left)
	}
}
