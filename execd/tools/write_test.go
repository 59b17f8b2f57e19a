package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/tools"
)

func TestWrite(t *testing.T) {
	d := newDesk(t)
	d.put("/old", "old")
	d.link("d/e/f", "/dangling")
	for _, tt := range []struct {
		args tools.WriteArgs
		want string // Text when empty
		made bool
		mode uint32
		err  error
	}{
		{args: tools.WriteArgs{Path: "/old", Text: "new"}, mode: 0o640},
		{args: tools.WriteArgs{Path: "/old", Text: "x", New: true}, err: vfs.ErrExist},
		{args: tools.WriteArgs{Path: "a/b/c", Text: "1\r\n"}, made: true, mode: 0o644},
		{args: tools.WriteArgs{Path: "/run", Text: "#!", Executable: true, New: true}, made: true, mode: 0o755},
		{args: tools.WriteArgs{Path: "/data", Base64: "AP8="}, want: "\x00\xff", made: true, mode: 0o644},
		{args: tools.WriteArgs{Path: "/x", Base64: "?"}, err: vfs.ErrInvalid},
		{args: tools.WriteArgs{Path: "/empty"}, made: true, mode: 0o644},
		{args: tools.WriteArgs{Path: "/x", Text: "a", Base64: "AP8="}, err: vfs.ErrInvalid},
		{args: tools.WriteArgs{Path: "/x", Text: strings.Repeat("x", tools.MaxWrite+1)}, err: vfs.ErrTooBig},
		{args: tools.WriteArgs{Path: "/a/b", Text: "x"}, err: vfs.ErrIsDir},
		{args: tools.WriteArgs{Path: "/", Text: "x"}, err: vfs.ErrIsDir},
		{args: tools.WriteArgs{Path: "/old/x", Text: "x"}, err: vfs.ErrNotDir},
		{args: tools.WriteArgs{Path: "", Text: "x"}, err: vfs.ErrNotExist},
		{args: tools.WriteArgs{Path: strings.Repeat("n", 256), Text: "x"}, err: vfs.ErrNameTooLong},
	} {
		r, err := d.Write(t.Context(), tt.args)
		what := fmt.Sprintf("write %.40q", tt.args.Path)
		wantErr(t, what, err, tt.err)
		if err != nil {
			continue
		}
		d.has(tt.args.Path, tt.want+tt.args.Text)
		a, err := d.FS.Stat(t.Context(), tt.args.Path)
		d.ok(err)
		if r.Made != tt.made || a.Mode != tt.mode {
			t.Errorf("%s: %+v, mode %o", what, r, a.Mode)
		}
	}
}

func TestDelete(t *testing.T) {
	d := newDesk(t)
	d.put("/d/e/f", "x")
	d.link("d", "/link")
	for _, tt := range []struct {
		args tools.DeleteArgs
		err  error
	}{
		{tools.DeleteArgs{Path: "/d"}, vfs.ErrNotEmpty},
		{tools.DeleteArgs{Path: "/link", Recursive: true}, nil},
		{tools.DeleteArgs{Path: "/d/e/f"}, nil},
		{tools.DeleteArgs{Path: "/d/e/f"}, vfs.ErrNotExist},
		{tools.DeleteArgs{Path: "/d/e"}, nil},
		{tools.DeleteArgs{Path: "/", Recursive: true}, vfs.ErrNotPermitted},
		{tools.DeleteArgs{Path: "d/..", Recursive: true}, vfs.ErrNotPermitted},
		{tools.DeleteArgs{Path: "/d", Recursive: true}, nil},
		{tools.DeleteArgs{Path: ""}, vfs.ErrNotExist},
	} {
		_, err := d.Delete(t.Context(), tt.args)
		wantErr(t, fmt.Sprintf("%+v", tt.args), err, tt.err)
	}
}
