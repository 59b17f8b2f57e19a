package text

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var sortOptions = getopt.New("bcCdfghik:mMno:rRsS:t:T:uVz", "ignore-leading-blanks=b", "dictionary-order=d",
	"ignore-case=f", "general-numeric-sort=g", "human-numeric-sort=h", "ignore-nonprinting=i", "key:=k", "merge=m",
	"month-sort=M", "numeric-sort=n", "output:=o", "reverse=r", "random-sort=R", "stable=s", "buffer-size:=S",
	"field-separator:=t", "temporary-directory:=T", "unique=u", "version-sort=V", "zero-terminated=z", "check::=c",
	"parallel:", "batch-size:", "sort:", "files0-from:", "debug", "random-source:")

// sorter is what one sort does.
type sorter struct {
	*tool.Call
	global sortMode
	keys   []sortKey
	delim  int // the field separator, or -1 for the empty text between blanks and what is not
	end    byte
	output string
	check  byte // 'c', 'C' or 0
	stable bool
	unique bool
	merges bool
	from   string // names of the files
	seed   uint64

	plainFirst bool // the first key is compared as bytes
}

func sortLines(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(sortOptions, 2)
	if err != nil {
		return err
	}
	s := &sorter{Call: c, delim: -1, end: '\n'}
	for _, o := range options {
		if err := s.set(o); err != nil {
			return err
		}
	}
	s.finish()
	if s.from != "" {
		if len(files) > 0 {
			return files0Operand(c, 2, files[0])
		}
		data, err := c.ReadFile(ctx, s.from)
		switch {
		case err != nil:
			return c.Die(2, "open failed: %s: %s", s.from, command.Reason(err))
		case len(data) == 0:
			return c.Die(2, "no input from '%s'", s.from)
		}
		files = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		if i := slices.Index(files, ""); i >= 0 {
			return c.Die(2, "%s:%d: invalid zero-length file name", s.from, i+1)
		}
	}
	if s.check != 0 {
		return s.checkOrder(ctx, files)
	}
	if s.merges {
		lines, err := s.readMerged(ctx, files)
		if err != nil {
			return err
		}
		return s.write(ctx, lines)
	}
	lines, err := s.read(ctx, files)
	if err != nil {
		return err
	}
	if lines, err = s.sort(ctx, lines); err != nil {
		return err
	}
	return s.write(ctx, lines)
}

// readMerged is -m: files that are in order already are merged, one after another.
func (s *sorter) readMerged(ctx context.Context, files []string) ([]sortLine, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var all []sortLine
	for _, name := range files {
		lines, err := s.read(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		merged := make([]sortLine, len(all)+len(lines))
		if err := s.merge(ctx, all, lines, merged); err != nil {
			return nil, err
		}
		all = merged
	}
	return all, nil
}

func (s *sorter) set(o getopt.Option) error {
	switch o.Name {
	case "k":
		key, err := parseKey(o.Value)
		if err != nil {
			return s.Die(2, "%s", err)
		}
		s.keys = append(s.keys, key)
	case "o":
		s.output = o.Value
	case "s":
		s.stable = true
	case "m":
		s.merges = true
	case "u":
		s.unique = true
	case "z":
		s.end = 0
	case "c":
		s.check = 'c'
		if o.Value == "quiet" || o.Value == "silent" {
			s.check = 'C'
		}
	case "C":
		s.check = 'C'
	case "files0-from":
		s.from = o.Value
	case "t":
		return s.setDelimiter(o.Value)
	case "parallel":
		switch n, err := tool.Count(o.Value, 10, ""); {
		case err != nil && !errors.Is(err, tool.ErrRange):
			_ = s.Refuse(o, err)
			return tool.Exit(2)
		case err == nil && n == 0:
			return s.Die(2, "number in parallel must be nonzero")
		}
	case "sort":
		return s.setOrder(o.Value)
	default:
		if len(o.Name) == 1 {
			s.global.set(o.Name[0])
		}
	}
	return nil
}

// setOrder reads --sort: the name of an order or the beginning of it.
func (s *sorter) setOrder(text string) error {
	orders := [...]string{"general-numeric", "human-numeric", "month", "numeric", "random", "version"}
	letters, found := "", 0
	for i, order := range orders {
		if strings.HasPrefix(order, text) {
			letters, found = "ghMnRV"[i:i+1], found+1
		}
	}
	if found == 1 {
		s.global.set(letters[0])
		return nil
	}
	kind := "invalid"
	if found > 1 {
		kind = "ambiguous"
	}
	s.Say("%s argument '%s' for '--sort'\nValid arguments are:\n  - '%s'\nTry 'sort --help' for more information.", kind, text,
		strings.Join(orders[:], "'\n  - '"))
	return tool.Exit(1)
}

func (s *sorter) setDelimiter(text string) error {
	switch {
	case text == "":
		return s.Die(2, "empty tab")
	case text == `\0`:
		s.delim = 0
	case len(text) > 1:
		return s.Die(2, "multi-character tab '%s'", text)
	default:
		s.delim = int(text[0])
	}
	return nil
}

// finish gives the keys that have no modes of their own the global ones, and makes the whole line a key when there is
// none.
func (s *sorter) finish() {
	for i := range s.keys {
		if k := &s.keys[i]; k.mode == (sortMode{}) && !k.startBlanks && !k.endBlanks {
			k.mode = s.global
			k.startBlanks, k.endBlanks = s.global.blanks, s.global.blanks
		}
	}
	if len(s.keys) == 0 {
		if whole := s.global; whole != (sortMode{reverse: whole.reverse}) {
			s.keys = []sortKey{{mode: s.global, startBlanks: s.global.blanks}}
		}
	}
	s.plainFirst = len(s.keys) == 0 || s.keys[0].mode == sortMode{reverse: s.keys[0].mode.reverse, blanks: s.keys[0].mode.blanks}
	if s.Rand != nil {
		s.seed = s.Rand.Uint64()
	}
}

// read returns the lines of all files, in a few large blocks of memory.
func (s *sorter) read(ctx context.Context, files []string) ([]sortLine, error) {
	var lines []sortLine
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		in, err := s.Open(ctx, name)
		if err != nil {
			return nil, s.Die(2, "cannot read: %s: %s", name, command.Reason(err))
		}
		lines, err = s.readFrom(in, lines)
		_ = in.Close()
		if tool.IsDir(err) {
			return nil, s.Die(2, "read failed: %s: %s", name, command.Reason(err))
		}
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func (s *sorter) readFrom(in io.Reader, lines []sortLine) ([]sortLine, error) {
	records := s.Records(in, s.end)
	for {
		block := records.Block()
		if block == nil {
			return lines, records.Err()
		}
		// The bytes, and twice what leads to each line: sorting needs as much again.
		if err := s.Take(int64(2*len(block)) + 144*int64(bytes.Count(block, []byte{s.end})+1)); err != nil {
			return nil, err
		}
		block = bytes.Clone(block)
		for len(block) > 0 {
			i := bytes.IndexByte(block, s.end)
			if i < 0 {
				i = len(block)
			}
			lines = append(lines, s.prepare(block[:i:i]))
			block = block[min(i+1, len(block)):]
		}
	}
}

func (s *sorter) write(ctx context.Context, lines []sortLine) error {
	if s.output != "" {
		f, err := s.FS.CreateFile(ctx, s.output)
		if err != nil {
			return s.Die(2, "open failed: %s: %s", s.output, command.Reason(err))
		}
		defer f.Close()
		s.Out.Reset(f)
	}
	for i, line := range lines {
		if s.unique && i > 0 && s.compareKeys(&lines[i-1], &line) == 0 {
			continue
		}
		if i%4096 == 4095 {
			if err := s.Step(ctx, 400); err != nil {
				return err
			}
		}
		_, _ = s.Out.Write(line.text)
		if err := s.Out.WriteByte(s.end); err != nil {
			return err
		}
	}
	return s.Out.Flush()
}

func (s *sorter) checkOrder(ctx context.Context, files []string) error {
	name := "-"
	switch len(files) {
	case 0:
	case 1:
		name = files[0]
	default:
		return s.Die(2, "extra operand '%s' not allowed with -%c", files[1], s.check)
	}
	in, err := s.Open(ctx, name)
	if err != nil {
		return s.Die(2, "cannot read: %s: %s", name, command.Reason(err))
	}
	defer in.Close()
	records := s.Records(in, s.end)
	var last sortLine
	for n := 1; ; n++ {
		text, ok := records.Next()
		if !ok {
			return records.Err()
		}
		line := s.prepare(bytes.Clone(text))
		if n > 1 {
			order := s.compare(&last, &line)
			if order > 0 || s.unique && s.compareKeys(&last, &line) == 0 {
				if s.check == 'C' {
					return tool.Exit(1)
				}
				return s.Die(1, "%s:%d: disorder: %s", name, n, text)
			}
		}
		last = line
	}
}
