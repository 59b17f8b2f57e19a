package mirror

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// A push whose answer was lost is known again by the inodes that it has made so, and by nothing that another mirror may do.
func TestEchoOfAPush(t *testing.T) {
	inode := func(ino vfs.Ino, ctime vfs.Time) vfs.Record {
		rec := vfs.InodeRecord{Type: vfs.TypeRegular, Nlink: 1, Ctime: ctime}
		return vfs.Record{Key: reconcile.InodeKey(ino), Value: rec.Append(nil)}
	}
	name := vfs.Record{
		Key:   vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "f"},
		Value: (&vfs.DirentRecord{Ino: 7, Type: vfs.TypeRegular}).Append(nil),
	}
	f := new(flight)
	for _, r := range []vfs.Record{inode(7, 100), inode(8, 100), name} {
		f.push.Records = append(f.push.Records, vfs.PushRecord{Record: r})
	}
	for _, tt := range []struct {
		what    string
		changes []vfs.Record
		want    bool
	}{
		{"nothing", nil, false},
		{"all of it", []vfs.Record{inode(7, 100), inode(8, 100), name}, true},
		{"one changed again", []vfs.Record{inode(7, 100), inode(8, 200), name}, true},
		{"some of it", []vfs.Record{inode(7, 100), name}, false},
		{"the same name by another", []vfs.Record{inode(7, 200), inode(8, 200), name}, false},
	} {
		if got := f.echoedIn(tt.changes); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}
