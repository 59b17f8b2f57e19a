package fusefs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// A path is followed through symlinks up to a mount of ours, and not into it: nothing there is even looked at.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mounted := filepath.Join(dir, "a b") // does not exist: who looks at it gets another error
	for _, d := range []string{"plain", "over/other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"in": "a b/deep/file", "rel": "plain", "abs": dir + "/plain", "loop": "loop", "back": "plain/../../" + filepath.Base(dir) + "/in",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	escaped := strings.ReplaceAll(mounted, " ", `\040`)
	mounts := mountsIn("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
		"22 21 0:40 / " + escaped + " rw,relatime shared:1 - fuse.carrel ws@/store rw\n" +
		"23 21 0:41 / " + dir + "/over rw - fuse.carrel ws@/store rw\n" +
		"24 23 0:42 / " + dir + "/over rw - tmpfs tmpfs rw\n" +
		"25 21 0:43 / " + dir + "/plai rw - fuse.carrel ws@/store rw\n")
	for _, tt := range []struct {
		path, want string
		err        error
	}{
		{path: "/", want: "/"},
		{path: dir + "/plain", want: dir + "/plain"},
		{path: dir + "//rel/./../rel/", want: dir + "/plain"},
		{path: dir + "/abs", want: dir + "/plain"},
		{path: dir + "/over/other", want: dir + "/over/other"},
		{path: mounted, err: vfs.ErrNotSupported},
		{path: mounted + "/x/y", err: vfs.ErrNotSupported},
		{path: dir + "/in", err: vfs.ErrNotSupported},
		{path: dir + "/back", err: vfs.ErrNotSupported},
		{path: dir + "/a bc", err: vfs.ErrNotExist},
		{path: dir + "/none/x", err: vfs.ErrNotExist},
		{path: dir + "/loop", err: vfs.ErrInvalid},
	} {
		got, err := resolveAmong(mounts, tt.path)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v, want %q, %v", tt.path, got, err, tt.want, tt.err)
		}
	}
	if got, err := Resolve(dir + "/abs"); got != dir+"/plain" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
