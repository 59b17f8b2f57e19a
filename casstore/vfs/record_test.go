package vfs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"
)

var inodeRecords = []struct {
	name string
	rec  InodeRecord
	hex  string
}{
	{
		"root",
		InodeRecord{Type: TypeDir, Mode: 0o755, Nlink: 2, Parent: 1, Mtime: 1, Ctime: 2, Btime: 3},
		"02ed0302000000010000020406" + "00",
	},
	{
		"inline",
		InodeRecord{Type: TypeRegular, Mode: 0o4644, Nlink: 1, UID: 1000, GID: 100, Size: 3, Xattrs: 2, Mtime: -1,
			Body: Body{BodyInline, []byte("abc")}},
		"01a41301e80764000003020100000" + "1616263",
	},
	{
		"symlink",
		InodeRecord{Type: TypeSymlink, Mode: 0o777, Nlink: 1, Size: 1, Body: Body{BodyTarget, []byte("/")}},
		"03ff030100000000010000000004" + "2f",
	},
	{
		"small file with extents", // which nothing writes any more
		InodeRecord{Type: TypeRegular, Mode: 0o644, Nlink: 1, Size: 1000, Body: Body{BodyExtents, []byte{0, 0xe8, 7}}},
		"01a4030100000000e8070000000002" + "00e807",
	},
	{
		"device",
		InodeRecord{Type: TypeBlockDev, Nlink: 1, Rdev: math.MaxUint32, Mtime: math.MinInt64, Ctime: math.MaxInt64},
		"0700010000ffffffff0f000000ffffffffffffffffff01feffffffffffffffff010000",
	},
}

func TestInodeRecordVectors(t *testing.T) {
	for _, c := range inodeRecords {
		t.Run(c.name, func(t *testing.T) {
			got := c.rec.Append(nil)
			if hex.EncodeToString(got) != c.hex {
				t.Fatalf("encoded as %x, want %s", got, c.hex)
			}
			back, err := DecodeInode(got)
			if err != nil || !reflect.DeepEqual(back, c.rec) {
				t.Fatalf("decoded as %+v, %v", back, err)
			}
		})
	}
}

func TestDecodeInodeRejects(t *testing.T) {
	good := inodeRecords[1].rec
	change := func(f func(*InodeRecord)) []byte {
		r := good
		f(&r)
		return r.Append(nil)
	}
	cases := map[string][]byte{
		"nothing":               {},
		"cut short":             good.Append(nil)[:8],
		"unknown type":          change(func(r *InodeRecord) { r.Type = 9 }),
		"mode with type bits":   change(func(r *InodeRecord) { r.Mode = 0o100644 }),
		"parent of a file":      change(func(r *InodeRecord) { r.Parent = 5 }),
		"directory, no parent":  change(func(r *InodeRecord) { r.Type, r.Size, r.Body = TypeDir, 0, Body{} }),
		"size beyond the limit": change(func(r *InodeRecord) { r.Size, r.Body.Kind = MaxFileSize+1, BodyExtents }),
		"inline of other size":  change(func(r *InodeRecord) { r.Size = 4 }),
		"unknown body":          change(func(r *InodeRecord) { r.Body.Kind = 9 }),
		"long varint":           append([]byte{1, 0x80, 0x00}, good.Append(nil)[3:]...),
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			if r, err := DecodeInode(b); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("decoded %x as %+v, %v", b, r, err)
			}
		})
	}
}

func TestDirentRecord(t *testing.T) {
	r := DirentRecord{Ino: 300, Type: TypeSymlink}
	b := r.Append(nil)
	if hex.EncodeToString(b) != "03ac02" {
		t.Fatalf("encoded as %x", b)
	}
	if got, err := DecodeDirent(b); err != nil || got != r {
		t.Fatalf("decoded as %+v, %v", got, err)
	}
	for _, bad := range [][]byte{{}, {3}, {3, 0}, {0, 1}, {8, 1}, {3, 0xac, 0x02, 0}, {3, 0x81, 0x00}} {
		if got, err := DecodeDirent(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("decoded %x as %+v, %v", bad, got, err)
		}
	}
}

func FuzzDecodeInode(f *testing.F) {
	for _, c := range inodeRecords {
		f.Add(c.rec.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeInode(b)
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x is not canonical: %+v", b, r)
		}
	})
}

func TestTimeConversions(t *testing.T) {
	for _, c := range []struct {
		sec, nsec int64
		want      Time
	}{
		{0, 0, 0}, {1, 5, 1_000_000_005}, {-1, 999_999_999, -1}, {-2, 0, -2_000_000_000},
		{math.MaxInt64, 0, math.MaxInt64}, {math.MinInt64, 0, math.MinInt64}, {1 << 32, 1, 4294967296000000001},
	} {
		got := TimeFromUnix(c.sec, c.nsec)
		if got != c.want {
			t.Errorf("TimeFromUnix(%d, %d) = %d, want %d", c.sec, c.nsec, got, c.want)
		}
		if got == math.MaxInt64 || got == math.MinInt64 {
			continue
		}
		if sec, nsec := got.Unix(); sec != c.sec || int64(nsec) != c.nsec {
			t.Errorf("%d.Unix() = %d, %d, want %d, %d", got, sec, nsec, c.sec, c.nsec)
		}
		if TimeOf(got.Go()) != got {
			t.Errorf("TimeOf(%d.Go()) = %d", got, TimeOf(got.Go()))
		}
	}
}
