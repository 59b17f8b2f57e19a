package text

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var cutOptions = getopt.New("b:c:d:f:nsz", "bytes:=b", "characters:=c", "delimiter:=d", "fields:=f", "only-delimited=s",
	"zero-terminated=z", "complement", "output-delimiter:")

// span is a range of positions, from 1.
type span struct{ lo, hi int }

// cutter is what one cut does.
type cutter struct {
	*tool.Call
	spans      []span
	fields     bool
	delim      byte
	out        []byte // between selected parts
	outGiven   bool
	only       bool
	complement bool
	end        byte
}

func cut(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(cutOptions, 1)
	if err != nil {
		return err
	}
	k := &cutter{Call: c, delim: '\t', end: '\n'}
	if err := k.configure(options); err != nil {
		return err
	}
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Records(in, k.end)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			do := k.bytes
			if k.fields {
				do = k.split
			}
			if err := do(line); err != nil {
				return err
			}
		}
		return lines.Err()
	})
}

func (k *cutter) configure(options []getopt.Option) error {
	list, kind, delimited := "", "", false
	for _, o := range options {
		switch o.Name {
		case "b", "c", "f":
			if kind != "" {
				return k.Usage(1, "only one list may be specified")
			}
			list, kind = o.Value, o.Name
		case "d":
			if len(o.Value) > 1 {
				return k.Usage(1, "the delimiter must be a single character")
			}
			k.delim, delimited = append([]byte(o.Value), 0)[0], true
		case "s":
			k.only = true
		case "z":
			k.end = 0
		case "complement":
			k.complement = true
		case "output-delimiter":
			if k.out, k.outGiven = []byte(o.Value), true; o.Value == "" {
				k.out = []byte{0} // as GNU's: what is empty is a NUL
			}
		}
	}
	k.fields = kind == "f"
	switch {
	case kind == "":
		return k.Usage(1, "you must specify a list of bytes, characters, or fields")
	case delimited && !k.fields:
		return k.Usage(1, "an input delimiter may be specified only when operating on fields")
	case k.only && !k.fields:
		return k.Usage(1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	if !k.outGiven && k.fields {
		k.out = []byte{k.delim}
	}
	var err error
	if k.spans, err = parseSpans(list, k.fields); err != nil {
		return k.Usage(1, "%s", err)
	}
	k.spans = joined(k.spans)
	if k.complement {
		k.spans = invert(k.spans)
	}
	return nil
}

// parseSpans reads "1,3-5,7-" and returns the spans in order, overlapping ones joined.
func parseSpans(list string, fields bool) ([]span, error) {
	what := "byte/character position"
	if fields {
		what = "field value"
	}
	var spans []span
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		lo, hi, isRange := strings.Cut(item, "-")
		s := span{1, math.MaxInt}
		for _, end := range []struct {
			text string
			to   *int
		}{{lo, &s.lo}, {hi, &s.hi}} {
			if end.text == "" {
				continue
			}
			n, err := strconv.Atoi(end.text)
			if err != nil || n < 0 {
				return nil, errors.New("invalid " + what + " '" + item + "'")
			}
			*end.to = n
		}
		switch {
		case item == "-":
			return nil, errors.New("invalid range with no endpoint: -")
		case !isRange:
			s.hi = s.lo
		}
		if s.lo == 0 {
			if fields {
				return nil, errors.New("fields are numbered from 1")
			}
			return nil, errors.New("byte/character positions are numbered from 1")
		}
		if s.hi < s.lo {
			return nil, errors.New("invalid decreasing range")
		}
		spans = append(spans, s)
	}
	if len(spans) == 0 {
		if fields {
			return nil, errors.New("fields are numbered from 1")
		}
		return nil, errors.New("byte/character positions are numbered from 1")
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.lo - b.lo })
	return spans, nil
}

// joined merges spans that overlap.
func joined(spans []span) []span {
	out := spans[:1:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.lo <= last.hi {
			last.hi = max(last.hi, s.hi)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func invert(spans []span) []span {
	var out []span
	at := 1
	for _, s := range spans {
		if s.lo > at {
			out = append(out, span{at, s.lo - 1})
		}
		if s.hi == math.MaxInt {
			return out
		}
		at = s.hi + 1
	}
	return append(out, span{at, math.MaxInt})
}

func (k *cutter) bytes(line []byte) error {
	some := false
	for _, s := range k.spans {
		if s.lo > len(line) {
			break
		}
		if some {
			_, _ = k.Out.Write(k.out)
		}
		some = true
		_, _ = k.Out.Write(line[s.lo-1 : min(s.hi, len(line))])
	}
	return k.Out.WriteByte(k.end)
}

func (k *cutter) split(line []byte) error {
	i := bytes.IndexByte(line, k.delim)
	if i < 0 {
		if k.only {
			return nil
		}
		_, _ = k.Out.Write(line)
		return k.Out.WriteByte(k.end)
	}
	some, spans := false, k.spans
	for field := 1; len(spans) > 0; field++ {
		part := line
		if i >= 0 {
			part = line[:i]
		}
		for len(spans) > 0 && field > spans[0].hi {
			spans = spans[1:]
		}
		if len(spans) > 0 && field >= spans[0].lo {
			if some {
				_, _ = k.Out.Write(k.out)
			}
			some = true
			_, _ = k.Out.Write(part)
		}
		if i < 0 {
			break
		}
		line = line[i+1:]
		i = bytes.IndexByte(line, k.delim)
	}
	return k.Out.WriteByte(k.end)
}
