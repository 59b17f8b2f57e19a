package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler serves by streamable HTTP whoever shows the token, as "Authorization: Bearer TOKEN".
func Handler(s *sdk.Server, token string, log *slog.Logger) http.Handler {
	streams := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Logger: log, SessionTimeout: idleSession, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
	})
	// A browser sends no token by itself, but a page that had one stolen should not work either.
	inner := http.NewCrossOriginProtection().Handler(streams)
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(shown)) // so that the comparison takes the same time for any length
		if !ok || token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token of this server is needed", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}
