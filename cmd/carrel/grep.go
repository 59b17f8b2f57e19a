package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// maxLine is the longest line that grep looks at in one piece, in bytes. A longer one is matched and printed in pieces.
const maxLine = 1 << 20

func (p *program) grepCommand() *cli.Command {
	return &cli.Command{
		Name:      "grep",
		Usage:     "search the files of a workspace for a pattern",
		ArgsUsage: "PATTERN WORKSPACE[:/PATH]",
		Description: "PATTERN is a regular expression as Go and RE2 have it. Directories are searched with all that is below\n" +
			"them, symlinks in them are not followed. The exit status is 1 when nothing matches.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "fixed", Aliases: []string{"F"}, Usage: "PATTERN is plain text"},
			&cli.BoolFlag{Name: "ignore-case", Aliases: []string{"i"}, Usage: "letters match in either case"},
			&cli.BoolFlag{Name: "line-number", Aliases: []string{"n"}, Usage: "print line numbers"},
			&cli.BoolFlag{Name: "files", Aliases: []string{"l"}, Usage: "print only the paths of files that match"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per matching line"},
		},
		Action: p.grep,
	}
}

func (p *program) grep(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	at, err := parseAddress(c, args[1])
	if err != nil {
		return err
	}
	g := &searcher{program: p, number: c.Bool("line-number"), files: c.Bool("files"), json: c.Bool("json"),
		lines: bufio.NewReaderSize(nil, maxLine)}
	if g.pattern, err = compile(args[0], c.Bool("fixed"), c.Bool("ignore-case")); err != nil {
		return &usageError{c, err.Error()}
	}
	err = p.withWorkspace(c, at.workspace, func(w control.Workspace) error {
		return walkTree(c.Context, w, at.path, -1, func(path string, d vfs.Dirent) error {
			if d.Type != vfs.TypeRegular {
				return nil
			}
			return g.file(c.Context, w, path, d.Ino)
		})
	})
	if err != nil {
		return fmt.Errorf("grep in %s: %w", at, err)
	}
	if !g.found {
		return errQuiet
	}
	return nil
}

func compile(pattern string, fixed, ignoreCase bool) (*regexp.Regexp, error) {
	if fixed {
		pattern = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

type searcher struct {
	*program
	pattern *regexp.Regexp
	number  bool
	files   bool
	json    bool
	found   bool
	lines   *bufio.Reader
}

// matchJSON is a matching line as scripts see it.
type matchJSON struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"` // when Path is not UTF-8
	Line       int    `json:"line"`
	Text       string `json:"text"`
	TextBase64 string `json:"text_base64,omitempty"` // when Text is not UTF-8
}

func (g *searcher) file(ctx context.Context, tree vfs.Tree, path string, ino vfs.Ino) error {
	g.lines.Reset(&fileReader{ctx: ctx, tree: tree, ino: ino})
	head, err := g.lines.Peek(8 << 10)
	if errors.Is(err, vfs.ErrStale) {
		return nil // removed since it was listed
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	binary := bytes.IndexByte(head, 0) >= 0
	for n := 1; ; n++ {
		line, err := g.lines.ReadSlice('\n')
		if len(line) > 0 && g.pattern.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			g.found = true
			if more, err := g.match(path, n, line, binary); !more {
				return err
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			n-- // more of the same line
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// match prints a matching line, and reports whether the file's others are wanted too.
func (g *searcher) match(path string, number int, line []byte, binary bool) (more bool, err error) {
	text := string(bytes.TrimSuffix(line, []byte("\n")))
	switch {
	case g.json:
		err := g.printJSON(matchJSON{
			strings.ToValidUTF8(path, "\uFFFD"), base64IfNeeded(path), number, strings.ToValidUTF8(text, "\uFFFD"),
			base64IfNeeded(text),
		})
		return err == nil && !binary, err
	case g.files:
		_, err := fmt.Fprintln(g.stdout, g.shown(path))
		return false, err
	case binary:
		_, err := fmt.Fprintf(g.stdout, "%s: binary file matches\n", g.shown(path))
		return false, err
	case g.number:
		_, err = fmt.Fprintf(g.stdout, "%s:%d:%s\n", g.shown(path), number, text)
	default:
		_, err = fmt.Fprintf(g.stdout, "%s:%s\n", g.shown(path), text)
	}
	return err == nil, err
}
