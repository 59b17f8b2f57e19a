package shell

import (
	"context"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// What a script finds beside the workspace: /dev and /tmp, neither of which is in it afterwards.
func TestView(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"echo x > /tmp/a; cat /tmp/a; cd /tmp; pwd -P; ls; cd ..; pwd", "x\n/tmp\na\n/\n"},
		{"mkdir -p /tmp/d/e; cd /tmp/d/e; pwd -P; cd ../..; pwd -P", "/tmp/d/e\n/tmp\n"},
		{"mkdir w; ln -s /tmp w/t; echo y > w/t/f; cat /tmp/f; rm -r w", "y\n"},
		{"echo z > /tmp/f; cp /tmp/f g; cat g; mv g /tmp/h; cat /tmp/h; mv /tmp/h i; cat i; rm i", "z\nz\nz\n"},
		{"rmdir /tmp 2> /dev/null; echo $?; mkdir /tmp 2> /dev/null; echo $?; test -k /tmp; echo $?", "1\n1\n0\n"},
		{"ls -A /; echo /*; find . | wc -l", "/*\n1\n"},
		{"echo lost > /dev/null; cat /dev/null; [ -c /dev/zero ]; echo $?; head -c 3 /dev/zero | wc -c", "0\n3\n"},
		{"echo in | cat /dev/stdin; echo out > /dev/stdout; cat /dev/fd/3 3<<< three", "in\nout\nthree\n"},
		{"echo x > /dev/full; echo $?", "1\n"},
		{"{ echo x > /dev/none; } 2> /dev/null; echo $?", "1\n"},
		{"a=$(head -c 8 /dev/urandom | od -An -tx1 2> /dev/null); b=$(head -c 8 /dev/urandom | cksum 2> /dev/null); echo ok", "ok\n"},
	} {
		fs := treepath.FS{Tree: vfstest.NewTree()}
		o := runScript(t, fs, "cd /\n"+tt.script, false)
		if o.stdout != tt.want {
			t.Errorf("%s\n got %q\nwant %q\n%s", tt.script, o.stdout, tt.want, o.stderr)
		}
	}
}

// The tree under /tmp keeps the contract of a tree as far as it is about itself.
func TestTmpTreeNumbers(t *testing.T) {
	tree := newTmpTree(vfstest.NewTree(), vfs.RootIno, 1<<20)
	ctx := context.Background()
	fs := treepath.FS{Tree: tree}
	if err := fs.MkdirAll(ctx, "/tmp/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, parent := range map[string]string{"/tmp": "/", "/tmp/a": "/tmp", "/tmp/a/b": "/tmp/a"} {
		a, err := fs.Stat(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		up, err := fs.Stat(ctx, parent)
		if err != nil || a.Parent != up.Ino {
			t.Errorf("%s: parent %d, want %d, %v", path, a.Parent, up.Ino, err)
		}
	}
	if err := fs.WriteFile(ctx, "/tmp/large", make([]byte, 2<<20), 0o644); err == nil {
		t.Error("/tmp holds more than it may")
	}
}
