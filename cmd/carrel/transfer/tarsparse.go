package transfer

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// archive/tar reads sparse files and does not write them. These entries are therefore laid out here, in GNU's sparse
// format 1.0 on PAX (the manual of GNU tar, "Storing Sparse Files"), between two flushes of the library's writer:
//
//	block 'x'   name GNU.sparse.* and all metadata as PAX records
//	block '0'   a USTAR header; its size is that of what follows
//	map         "N\n", then "offset\n" "length\n" for each run, padded to 512 bytes
//	bytes       of the runs, one after the other, padded to 512 bytes

// putSparse writes a file that has holes.
func (s *TarSink) putSparse(ctx context.Context, e *Entry, runs []Run, content Content) error {
	if err := s.tar.Flush(); err != nil {
		return err
	}
	layout := sparseMap(runs, e.Size)
	n := uint64(0)
	for _, r := range runs {
		n += r.N
	}
	head := sparseHeader(e, uint64(len(layout))+n)
	if _, err := s.w.Write(append(head, layout...)); err != nil {
		return err
	}
	if err := s.bytes(ctx, content, n, s.w); err != nil {
		return err
	}
	_, err := s.w.Write(zeros[:padding(n)])
	return err
}

// padding returns how many bytes are missing to a whole block.
func padding(n uint64) uint64 { return -n % tarBlock }

func sparseMap(runs []Run, size uint64) []byte {
	if end := len(runs) - 1; end < 0 || runs[end].Off+runs[end].N < size {
		runs = append(runs[:len(runs):len(runs)], Run{size, 0}) // GNU tar marks a hole at the end so
	}
	b := fmt.Appendf(nil, "%d\n", len(runs))
	for _, r := range runs {
		b = fmt.Appendf(b, "%d\n%d\n", r.Off, r.N)
	}
	return append(b, zeros[:padding(uint64(len(b)))]...)
}

func sparseHeader(e *Entry, stored uint64) []byte {
	records := map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
		"GNU.sparse.name":     e.Path,
		"GNU.sparse.realsize": strconv.FormatUint(e.Size, 10),
		"mtime":               paxTime(e.Mtime),
		"atime":               paxTime(e.Atime),
		"uid":                 strconv.FormatUint(uint64(e.UID), 10),
		"gid":                 strconv.FormatUint(uint64(e.GID), 10),
		"size":                strconv.FormatUint(stored, 10),
	}
	for _, x := range e.Xattrs {
		records[tarXattr+xattrKeyEncoder.Replace(x.Name)] = string(x.Value)
	}
	body := paxRecords(records)
	dir, name := path.Split(e.Path)
	plain := dir + "GNUSparseFile.0/" + name // what a reader without sparse files unpacks to
	b := ustarBlock('x', "PaxHeaders.0/"+name, 0o644, uint64(len(body)))
	b = append(b, body...)
	b = append(b, zeros[:padding(uint64(len(body)))]...)
	return append(b, ustarBlock('0', plain, e.Mode, stored)...)
}

// paxTime is seconds since the epoch as a decimal fraction.
func paxTime(t vfs.Time) string {
	sec, nsec := t.Unix()
	if sec < 0 && nsec > 0 { // -1.25 is two seconds before the epoch and three quarters after that
		return fmt.Sprintf("-%d.%09d", -(sec + 1), 1_000_000_000-nsec)
	}
	return fmt.Sprintf("%d.%09d", sec, nsec)
}

// paxRecords encodes "length key=value\n", where the length counts itself.
func paxRecords(records map[string]string) []byte {
	var keys []string
	for k := range records {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b bytes.Buffer
	for _, k := range keys {
		rest := len(k) + len(records[k]) + 3 // space, '=' and newline
		n := rest + len(strconv.Itoa(rest))
		if digits := len(strconv.Itoa(n)); rest+digits != n {
			n = rest + digits
		}
		b.WriteString(strconv.Itoa(n) + " " + k + "=" + records[k] + "\n")
	}
	return b.Bytes()
}

// ustarBlock is a header that readers of PAX take the type from, and all others what fits.
func ustarBlock(typeflag byte, name string, mode uint32, size uint64) []byte {
	b := make([]byte, tarBlock)
	copy(b[0:100], name) // cut, when it is longer: the PAX record has all of it
	copy(b[100:108], fmt.Sprintf("%07o", mode))
	copy(b[108:116], "0000000")
	copy(b[116:124], "0000000")
	copy(b[124:136], fmt.Sprintf("%011o", min(size, 0o77777777777)))
	copy(b[136:148], "00000000000")
	copy(b[148:156], strings.Repeat(" ", 8))
	b[156] = typeflag
	copy(b[257:265], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}
