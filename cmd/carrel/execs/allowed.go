package execs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/carrelfs/carrel/execd/gitremote"
)

const (
	// allowedName is the file in the store that lists the git repositories that scripts may reach.
	allowedName = "git-allow"
	// maxAllowed bounds that file.
	maxAllowed = 1 << 20
)

// newRemotes returns the repositories that a store's list lets scripts reach. The list is read when a script asks, so that
// it holds at once.
func newRemotes(dir string) *gitremote.Remotes {
	return gitremote.New("the file "+allowedName+" of the store", func() ([]string, error) {
		return readAllowed(filepath.Join(dir, allowedName))
	})
}

// readAllowed reads a list: a URL on each line, and comments behind "#". A file that is not there is an empty one.
func readAllowed(name string) ([]string, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	b, err := io.ReadAll(io.LimitReader(f, maxAllowed))
	if err != nil {
		return nil, err
	}
	var list []string
	for in := bufio.NewScanner(bytes.NewReader(b)); in.Scan(); {
		line, _, _ := strings.Cut(in.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list, nil
}
