package syncwire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// scanKeys calls f with the words of each line of a file of keys, and the line's number from 1. Empty lines and lines that
// begin with # say nothing. ErrCorrupt, with the number, for a line for which f is false, or that is too long to be one;
// ErrTooBig for more than maxKeyFile bytes.
func scanKeys(r io.Reader, f func(words []string, n int) bool) error {
	limited := &io.LimitedReader{R: r, N: maxKeyFile + 1}
	lines := bufio.NewScanner(limited)
	n := 1
	for ; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) > 0 && words[0][0] != '#' && !f(words, n) {
			return fmt.Errorf("line %d says something else: %w", n, vfs.ErrCorrupt)
		}
	}
	switch err := lines.Err(); {
	case limited.N == 0:
		return fmt.Errorf("more than %d bytes: %w", maxKeyFile, vfs.ErrTooBig)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d has more than %d bytes: %w", n, bufio.MaxScanTokenSize, vfs.ErrCorrupt)
	default:
		return err
	}
}

// ParseClientKeys reads a file of the keys of clients, for ServerConfig.ClientKeys: in each line a fingerprint and, after white
// space, whose it is, which is returned with it. Errors are those of ParseKnownHosts.
func ParseClientKeys(r io.Reader) (map[Fingerprint]string, error) {
	keys := map[Fingerprint]string{}
	err := scanKeys(r, func(words []string, _ int) bool {
		key, err := ParseFingerprint(words[0])
		keys[key] = strings.Join(words[1:], " ")
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}
