package text

import (
	"context"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pasteOptions = getopt.New("d:sz", "delimiters:=d", "serial=s", "zero-terminated=z")

func paste(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(pasteOptions, 1)
	if err != nil {
		return err
	}
	delims, end, serial := []string{"\t"}, byte('\n'), false
	for _, o := range options {
		switch o.Name {
		case "d":
			delims = pasteDelimiters(o.Value)
		case "s":
			serial = true
		case "z":
			end = 0
		}
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	if serial {
		return pasteSerial(ctx, c, files, delims, end)
	}
	return pasteParallel(ctx, c, files, delims, end)
}

// pasteDelimiters cuts the list into delimiters; "\0" is an empty one.
func pasteDelimiters(list string) []string {
	var out []string
	for i := 0; i < len(list); i++ {
		d := list[i : i+1]
		if d == `\` && i+1 < len(list) {
			i++
			switch list[i] {
			case '0':
				d = ""
			case 'n':
				d = "\n"
			case 't':
				d = "\t"
			default:
				d = list[i : i+1]
			}
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

func pasteSerial(ctx context.Context, c *tool.Call, files, delims []string, end byte) error {
	return c.Each(ctx, files, func(_ string, in *tool.Input) error {
		lines := c.Records(in, end)
		line, ok := lines.Next()
		for i := 0; ok; i++ {
			_, _ = c.Out.Write(line)
			if line, ok = lines.Next(); ok {
				if _, err := c.Out.WriteString(delims[i%len(delims)]); err != nil {
					return err
				}
			}
		}
		if lines.Err() != nil {
			return lines.Err()
		}
		return c.Out.WriteByte(end)
	})
}

func pasteParallel(ctx context.Context, c *tool.Call, files, delims []string, end byte) error {
	var sources []*tool.Lines
	var standard *tool.Lines
	for _, name := range files {
		if name == "-" && standard != nil {
			sources = append(sources, standard)
			continue
		}
		in, err := c.Open(ctx, name)
		if err != nil {
			if err = c.FaultAt(ctx, name, err); err == nil {
				err = tool.Exit(1)
			}
			return err
		}
		defer in.Close()
		sources = append(sources, c.Records(in, end))
		if name == "-" {
			standard = sources[len(sources)-1]
		}
	}
	for {
		more, err := pasteRow(c, sources, delims, end)
		if err != nil || !more {
			return err
		}
	}
}

// pasteRow writes one line made of one of each source's. Delimiters wait until it is known that a line follows.
func pasteRow(c *tool.Call, sources []*tool.Lines, delims []string, end byte) (more bool, err error) {
	pending := ""
	for i, s := range sources {
		line, ok := s.Next()
		if s.Err() != nil {
			return false, s.Err()
		}
		if ok {
			more = true
			_, _ = c.Out.WriteString(pending)
			_, _ = c.Out.Write(line)
			pending = ""
		}
		if i < len(sources)-1 {
			pending += delims[i%len(delims)]
		}
	}
	if !more {
		return false, nil
	}
	_, _ = c.Out.WriteString(pending)
	return true, c.Out.WriteByte(end)
}
