package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// EditArgs says what is to be changed in a file.
type EditArgs struct {
	Path  string        `json:"path" jsonschema:"the file"`
	Edits []Replacement `json:"edits" jsonschema:"what to change; all of it is done, or nothing"`
}

// Replacement is one change. Old must be in exactly one place of the file as it is before any of the changes.
type Replacement struct {
	Old string `json:"old" jsonschema:"text that is in exactly one place of the file, with as much around it as that takes"`
	New string `json:"new" jsonschema:"what is to be there in its place"`
}

// EditResult says what an edit changed.
type EditResult struct {
	Path string `json:"path"`
	Diff string `json:"diff"`          // unified
	Cut  bool   `json:"cut,omitempty"` // the diff is longer than shown
}

// Edit changes places of a text file. In a file whose lines end in CR LF those of the old and the new texts do too,
// whichever they are given with.
func (s *Set) Edit(ctx context.Context, a EditArgs) (*EditResult, error) {
	if len(a.Edits) == 0 || len(a.Edits) > MaxEdits {
		return nil, fmt.Errorf("edit %q: %d changes, of 1 to %d: %w", a.Path, len(a.Edits), MaxEdits, vfs.ErrInvalid)
	}
	var result *EditResult
	err := s.change(ctx, "edit", func() (err error) {
		result, err = s.edit(ctx, a)
		return err
	})
	return result, err
}

func (s *Set) edit(ctx context.Context, a EditArgs) (*EditResult, error) {
	before, err := s.FS.Stat(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	old, err := s.FS.ReadFile(ctx, a.Path, MaxEdit)
	if err != nil {
		return nil, err
	}
	if isBinary(old) {
		return nil, fmt.Errorf("edit %q: %w", a.Path, ErrBinary)
	}
	text, err := replaceAll(string(old), a.Edits)
	if err != nil {
		return nil, fmt.Errorf("edit %q: %w", a.Path, err)
	}
	now, err := s.FS.Stat(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	if now.Ino != before.Ino || now.Ctime != before.Ctime {
		return nil, fmt.Errorf("edit %q: it was changed meanwhile; read it again: %w", a.Path, vfs.ErrBusy)
	}
	if _, err := s.FS.ReplaceFile(ctx, a.Path, strings.NewReader(text), 0o644); err != nil {
		return nil, err
	}
	result := &EditResult{Path: clean(a.Path)}
	result.Diff, result.Cut = cut(unified(result.Path, result.Path, old, []byte(text)), MaxDiff)
	return result, nil
}

// unified compares texts by lines, in the way of diff -u.
func unified(oldName, newName string, old, text []byte) string {
	d := string(diff.Diff(oldName, old, newName, text))
	_, d, _ = strings.Cut(d, "\n") // "diff old new"
	return readable(d)
}

// span is a place in a text that is to become another.
type span struct {
	from, to int
	text     string
	edit     int // which edit, from 1
}

// replaceAll makes all edits of a text, or none.
func replaceAll(text string, edits []Replacement) (string, error) {
	mark := ""
	if rest, ok := strings.CutPrefix(text, bom); ok {
		mark, text = bom, rest
	}
	spans := make([]span, len(edits))
	for i, e := range edits {
		var err error
		if spans[i], err = locate(text, e); err != nil {
			return "", fmt.Errorf("change %d: %w", i+1, err)
		}
		spans[i].edit = i + 1
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	at := 0
	for i, sp := range spans {
		if sp.from < at {
			return "", fmt.Errorf("changes %d and %d, which can be one: %w", spans[i-1].edit, sp.edit, ErrOverlap)
		}
		out.WriteString(text[at:sp.from])
		out.WriteString(sp.text)
		at = sp.to
	}
	out.WriteString(text[at:])
	if out.String() == text {
		return "", ErrNoChange
	}
	return mark + out.String(), nil
}

// locate finds the one place of an edit. Old and new are taken as they are, but where the file's line ends are CR LF.
func locate(text string, e Replacement) (span, error) {
	e.Old = strings.TrimPrefix(e.Old, bom)
	if e.Old == "" {
		return span{}, fmt.Errorf("the old text is empty; write makes a whole file: %w", vfs.ErrInvalid)
	}
	if onlyCRLF(text) {
		e.Old, e.New = toCRLF(e.Old), toCRLF(e.New)
	} else if !strings.Contains(text, e.Old) && strings.Contains(text, toCRLF(e.Old)) {
		e.Old, e.New = toCRLF(e.Old), toCRLF(e.New) // one of both kinds, and here it is this one
	}
	places := occurrences(text, e.Old)
	switch {
	case len(places) == 0:
		return span{}, notFound(text, e.Old)
	case len(places) > 1:
		return span{}, fmt.Errorf("%s, lines %s; give more of what is around it: %w", quoted(e.Old), lineList(text, places),
			ErrAmbiguous)
	}
	return span{places[0], places[0] + len(e.Old), e.New, 0}, nil
}

// maxPlaces is how many places of an ambiguous text are told.
const maxPlaces = 5

// maxHint is how many lines a text may have that is looked for without regard to white space.
const maxHint = 50

// occurrences finds the places of a text, also those that overlap, until there are enough to tell.
func occurrences(text, part string) (places []int) {
	for at := 0; len(places) <= maxPlaces; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			break
		}
		places = append(places, at+i)
		at += i + 1
	}
	return places
}

func lineList(text string, places []int) string {
	var list []string
	for i, at := range places {
		if i == maxPlaces {
			list = append(list, "and more")
			break
		}
		list = append(list, fmt.Sprint(1+strings.Count(text[:at], lineFeed)))
	}
	return strings.Join(list, ", ")
}

// notFound says where the text would be if white space did not count: what models most often get wrong.
func notFound(text, old string) error {
	want := strings.Fields(old)
	lines := strings.Split(text, lineFeed)
	if strings.Count(old, lineFeed) > maxHint {
		lines = nil // not worth the time that it would take
	}
	for i, line := range lines {
		if len(want) == 0 || !strings.Contains(line, want[0]) {
			continue
		}
		near := strings.Fields(strings.Join(lines[i:min(len(lines), i+1+strings.Count(old, lineFeed))], " "))
		if len(near) >= len(want) && strings.Contains(strings.Join(near, " "), strings.Join(want, " ")) {
			return fmt.Errorf("%s, though with other white space in line %d: %w", quoted(old), i+1, ErrNoMatch)
		}
	}
	return fmt.Errorf("%s: %w", quoted(old), ErrNoMatch)
}

// quoted names a text by its beginning.
func quoted(s string) string {
	short, was := cut(s, 60)
	if was {
		return fmt.Sprintf("%q…", short)
	}
	return fmt.Sprintf("%q", short)
}
