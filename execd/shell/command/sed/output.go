package sed

import (
	"bufio"
	"context"
	"io"
	"sort"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// sink is somewhere to write lines. A line that came without a newline at the end of a file is written without; whatever
// follows it puts the newline first.
type sink struct {
	w       *bufio.Writer
	file    io.Closer
	end     byte
	missing bool
}

// line writes a line; whole says that it had its newline.
func (s *sink) line(text []byte, whole bool) error {
	s.settle()
	_, err := s.w.Write(text)
	if whole {
		err = s.w.WriteByte(s.end)
	}
	s.missing = !whole
	return err
}

// raw writes text that brings its own newline.
func (s *sink) raw(text []byte) error {
	s.settle()
	_, err := s.w.Write(text)
	return err
}

func (s *sink) settle() {
	if s.missing {
		_ = s.w.WriteByte(s.end)
		s.missing = false
	}
}

// sinks are the files that w writes, each opened once, before the script runs.
type sinks struct {
	ctx   context.Context
	call  *tool.Call
	out   *sink
	end   byte
	files map[string]*sink
}

func (s *sinks) open(name string) (*sink, error) {
	if name == "/dev/stdout" {
		return s.out, nil
	}
	if there, ok := s.files[name]; ok {
		return there, nil
	}
	var w io.Writer = s.call.Stderr
	var f *treepath.File
	if name != "/dev/stderr" {
		var err error
		if f, err = s.call.FS.CreateFile(s.ctx, name); err != nil {
			return nil, s.call.Die(4, "couldn't open file %s: %s", name, command.Reason(err))
		}
		w = f
	}
	made := &sink{w: bufio.NewWriter(w), end: s.end}
	if f != nil {
		made.file = f
	}
	s.files[name] = made
	return made, nil
}

// close writes what is buffered and closes the files.
func (s *sinks) close() error {
	var names []string
	for name := range s.files {
		names = append(names, name)
	}
	sort.Strings(names)
	var first error
	for _, name := range names {
		k := s.files[name]
		err := k.w.Flush()
		if k.file != nil {
			_ = k.file.Close()
		}
		if first == nil {
			first = err
		}
	}
	return first
}
