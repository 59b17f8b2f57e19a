package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// WriteArgs says what a file is to hold: Text, or the bytes of Base64.
type WriteArgs struct {
	Path       string `json:"path" jsonschema:"the file; directories above it are made"`
	Text       string `json:"text,omitempty" jsonschema:"all of its text"`
	Base64     string `json:"base64,omitempty" jsonschema:"in place of text: its bytes, in base64"`
	Executable bool   `json:"executable,omitempty" jsonschema:"let the file be run when it is made"`
	New        bool   `json:"new,omitempty" jsonschema:"fail when the file is there"`
}

// WriteResult says what was written.
type WriteResult struct {
	Path string `json:"path"`
	Size int    `json:"size"`
	Made bool   `json:"made"` // it was not there before
}

// Write writes a whole file: others see the old bytes or the new ones. One that is there keeps its mode.
func (s *Set) Write(ctx context.Context, a WriteArgs) (*WriteResult, error) {
	data, err := a.bytes()
	if err != nil {
		return nil, fmt.Errorf("write %q: %w", a.Path, err)
	}
	result := &WriteResult{Path: clean(a.Path), Size: len(data)}
	err = s.change(ctx, "write", func() (err error) {
		result.Made, err = s.write(ctx, a, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (a *WriteArgs) bytes() ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(a.Base64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	case a.Text != "" && a.Base64 != "":
		return nil, fmt.Errorf("both text and base64: %w", vfs.ErrInvalid)
	case a.Text != "":
		data = []byte(a.Text)
	}
	if len(data) > MaxWrite {
		return nil, fmt.Errorf("%d bytes: %w", len(data), vfs.ErrTooBig)
	}
	return data, nil
}

func (s *Set) write(ctx context.Context, a WriteArgs, data []byte) (made bool, err error) {
	_, err = s.FS.Lstat(ctx, a.Path)
	switch {
	case err == nil && a.New:
		return false, fmt.Errorf("write %q: %w", a.Path, vfs.ErrExist)
	case errors.Is(err, vfs.ErrNotExist) && a.Path != "":
		err = s.FS.MkdirAll(ctx, path.Dir(s.FS.Abs(a.Path)), 0o755)
	}
	if err != nil {
		return false, err
	}
	mode := uint32(0o644)
	if a.Executable {
		mode = 0o755
	}
	return s.FS.ReplaceFile(ctx, a.Path, bytes.NewReader(data), mode)
}

// DeleteArgs says what is to be deleted.
type DeleteArgs struct {
	Path      string `json:"path" jsonschema:"a file, an empty directory, or a symlink, which is deleted itself"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"delete a directory with all that is in it"`
}

// DeleteResult says what was deleted.
type DeleteResult struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// Delete deletes a file or a directory; never the root.
func (s *Set) Delete(ctx context.Context, a DeleteArgs) (*DeleteResult, error) {
	result := &DeleteResult{Path: clean(a.Path)}
	err := s.change(ctx, "delete", func() error {
		attr, err := s.FS.Lstat(ctx, a.Path)
		if err != nil {
			return err
		}
		result.Type = typeName(attr.Type)
		root := s.FS.Root
		if root == 0 {
			root = vfs.RootIno
		}
		switch {
		case attr.Ino == root:
			return fmt.Errorf("delete %q: it is the root: %w", a.Path, vfs.ErrNotPermitted)
		case a.Recursive:
			return s.FS.RemoveAll(ctx, a.Path)
		}
		return s.FS.Remove(ctx, a.Path)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}
