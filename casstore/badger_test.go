package casstore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// What Badger says of the sizes of its caches, in its own formats, is for those who debug the store; its other warnings are for
// all.
func TestBadgerLog(t *testing.T) {
	var out bytes.Buffer
	l := badgerLog{slog.New(slog.NewTextHandler(&out, nil))}
	l.Warningf("%s might be too small. Metrics: %s\n", "Block cache", "hit: 1")
	l.Warningf("Cache life expectancy (in seconds): %+v\n", 2)
	if out.Len() > 0 {
		t.Errorf("logged %q", out.String())
	}
	l.Warningf("While running doCompact: %v\n", "no space")
	if !strings.Contains(out.String(), "level=WARN") || !strings.Contains(out.String(), "no space") {
		t.Errorf("logged %q", out.String())
	}
}
