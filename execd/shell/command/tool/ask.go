package tool

import (
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command/datetime"
)

// Ask writes a question to Stderr and reads a line of Stdin: yes begins with y or Y.
func (c *Call) Ask(ctx context.Context, format string, args ...any) (bool, error) {
	fmt.Fprintf(c.Stderr, "%s: %s? ", c.Name, fmt.Sprintf(format, args...))
	in := c.Standard(ctx)
	answer, first := false, true
	for {
		var b [1]byte
		n, err := in.Read(b[:])
		if n == 0 || b[0] == '\n' {
			if ctx.Err() != nil {
				return false, err
			}
			return answer, nil
		}
		if first {
			answer, first = b[0]|0x20 == 'y', false
		}
	}
}

// Zone returns the location that the process's TZ names.
func (c *Call) Zone(ctx context.Context) *time.Location {
	tz, _ := c.Getenv("TZ")
	return datetime.Zone(tz, func(path string) ([]byte, error) { return c.FS.ReadFile(ctx, path, 1<<20) })
}
