package main

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

const (
	// patchMost is the largest file whose text is compared: the time that takes may grow with the square of the lines.
	patchMost = 1 << 20
	// patchContext is how many lines around a change are printed.
	patchContext = 3
)

// patch prints how the text of a file has changed.
func (p *program) patch(ctx context.Context, sides [2]control.Workspace, e casstore.DiffEntry) error {
	from := e.From
	if from == "" {
		from = e.Path
	}
	if e.Kind == casstore.DiffRenamed {
		fmt.Fprintf(p.stdout, "rename from %s\nrename to %s\n", p.shown(from), p.shown(e.Path))
	}
	if e.Old.Type == vfs.TypeDir || e.New.Type == vfs.TypeDir {
		return nil
	}
	if e.Fields&casstore.DiffBytes == 0 && e.Old.Ino != 0 && e.New.Ino != 0 {
		return nil
	}
	old, oldText, err := textOf(ctx, sides[0], e.Old)
	if err != nil {
		return err
	}
	text, newText, err := textOf(ctx, sides[1], e.New)
	if err != nil {
		return err
	}
	if !oldText || !newText {
		_, err := fmt.Fprintf(p.stdout, "binary or large files %s and %s differ\n", p.shown("a"+from), p.shown("b"+e.Path))
		return err
	}
	d := difflib.UnifiedDiff{
		A: linesOf(old), B: linesOf(text), FromFile: "a" + from, ToFile: "b" + e.Path, Context: patchContext,
	}
	if e.Old.Ino == 0 {
		d.FromFile = "/dev/null"
	}
	if e.New.Ino == 0 {
		d.ToFile = "/dev/null"
	}
	return difflib.WriteUnifiedDiff(p.stdout, d)
}

// textOf reads a file, or the target of a symlink. ok is false for what is no text, or too large.
func textOf(ctx context.Context, tree vfs.Tree, a vfs.Attr) (text []byte, ok bool, err error) {
	switch {
	case a.Ino == 0:
		return nil, true, nil
	case a.Type == vfs.TypeSymlink:
		target, err := tree.Readlink(ctx, a.Ino)
		return []byte(target), utf8.ValidString(target), err
	case a.Type != vfs.TypeRegular || a.Size > patchMost:
		return nil, false, nil
	}
	text = make([]byte, a.Size)
	n, err := tree.ReadAt(ctx, a.Ino, text, 0)
	if err != nil {
		return nil, false, err
	}
	text = text[:n]
	return text, utf8.Valid(text) && !bytes.Contains(text, []byte{0}), nil
}

// linesOf are the lines of a text with their ends. A last line without one says so, as diff(1) does.
func linesOf(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	if n := len(lines); n > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		lines[n-1] += "\n\\ No newline at end of file\n"
	}
	return lines
}
