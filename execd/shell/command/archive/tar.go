package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var tarOptions = getopt.New("cxtruAf:C:vzjJapkhOT:X:mopPSUwWI:b:iN:", "create=c", "extract=x", "get=x", "list=t", "append=r",
	"file:=f", "directory:=C", "verbose=v", "gzip=z", "gunzip=z", "bzip2=j", "xz=J", "auto-compress=a", "zstd",
	"preserve-permissions=p", "same-permissions=p", "keep-old-files=k", "dereference=h", "to-stdout=O", "files-from:=T",
	"exclude-from:=X", "exclude:", "strip-components:", "touch=m", "no-same-owner=o", "absolute-names=P", "overwrite",
	"wildcards", "no-wildcards", "transform:", "xform:=transform", "owner:", "group:", "mode:", "mtime:", "sort:",
	"numeric-owner", "no-recursion", "same-owner", "null", "format:", "exclude-vcs", "no-same-permissions", "one-top-level::",
	"skip-old-files", "update=u", "use-compress-program:=I", "add-file:", "totals::", "checkpoint::", "checkpoint-action:",
	"warning:", "ignore-failed-read", "xattrs", "no-xattrs", "acls", "no-acls", "selinux", "no-selinux", "utc", "full-time",
	"overwrite-dir", "no-overwrite-dir", "unlink-first=U", "blocking-factor:=b", "hard-dereference", "delay-directory-restore",
	"no-delay-directory-restore", "no-anchored", "wildcards-match-slash", "no-auto-compress", "force-local", "no-unquote",
	"verbatim-files-from", "no-verbatim-files-from", "no-null", "ignore-zeros=i", "sparse=S", "newer:=N",
	"newer-mtime:=N", "after-date:=N", "quoting-style:")

// compressors are the programs that -I may name, and the formats that they are of.
var compressors = map[string]*format{
	"gzip": gzipFormat, "pigz": gzipFormat, "zstd": zstdFormat, "zstdmt": zstdFormat, "unzstd": zstdFormat, "xz": xzFormat,
	"pixz": xzFormat, "bzip2": bzip2Format, "pbzip2": bzip2Format, "lbzip2": bzip2Format,
}

// tarrer is what one tar does.
type tarrer struct {
	*tool.Call
	ctx                                                         context.Context
	action                                                      byte
	archive                                                     string
	format                                                      *format
	auto, keep, skip, follow, toStdout, noTouch, absolute, flat bool
	verbose, strip                                              int
	exclude, from                                               []string
	members                                                     []place
	seen                                                        map[string]bool // members that were asked for and found
	links                                                       map[vfs.Ino]string
	removed                                                     string
	names                                                       *tool.Accounts
	dirs                                                        []*tar.Header // whose times are set last
	numeric, wildcards, nulls                                   bool
	listing                                                     io.Writer
	as                                                          disguise
	transforms                                                  []transform
	top                                                         string    // that all is extracted into
	newer                                                       time.Time // what is older is left out
}

// place is an operand and the directory that -C had set before it.
type place struct{ dir, name string }

func tarBody(ctx context.Context, c *tool.Call) error {
	c.Args = bundled(c.Args)
	t := &tarrer{Call: c, ctx: ctx, archive: "-", seen: map[string]bool{}, links: map[vfs.Ino]string{}, names: c.Accounts(ctx),
		listing: c.Out}
	options, operands, err := c.Options(tarOptions, 2)
	if err != nil {
		return err
	}
	dir := t.directories(operands)
	slices.SortStableFunc(options, func(a, b getopt.Option) int { // --one-top-level may take its name from -f
		return cmp.Compare(order(a), order(b))
	})
	for _, o := range options {
		if err := t.set(o); err != nil {
			return err
		}
	}
	switch t.action {
	case 'c', 'r':
		return t.create(ctx)
	case 'x', 't':
		fs := c.FS
		if dir != "" {
			t.FS = fs.At(dir)
		}
		return t.read(fs)
	}
	return usage(c, "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
}

func order(o getopt.Option) int {
	if o.Name == "f" {
		return 0
	}
	return 1
}

func usage(c *tool.Call, text string) error {
	c.Say("%s", text)
	fmt.Fprintf(c.Stderr, "Try '%s --help' or '%[1]s --usage' for more information.\n", c.Args[0])
	return tool.Exit(2)
}

// bundled rewrites "czf a.tar" as options: the letters' values follow in their order.
func bundled(args []string) []string {
	if len(args) < 2 || args[1] == "" || args[1][0] == '-' {
		return args
	}
	out := []string{args[0]}
	rest := args[2:]
	for _, letter := range args[1] {
		out = append(out, "-"+string(letter))
		if strings.ContainsRune("fCTXINb", letter) && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

// directories gives each operand the -C before it, and returns the last one: where extraction happens. Options have been
// checked already.
func (t *tarrer) directories(operands []string) string {
	dir, next := "", 0
	args := t.Args[1:]
	for i := 0; i < len(args) && next <= len(operands); i++ {
		arg := args[i]
		to := ""
		switch {
		case arg == "-C" || arg == "--directory":
			if i+1 < len(args) {
				i++
				to = args[i]
			}
		case strings.HasPrefix(arg, "--directory="):
			to = arg[len("--directory="):]
		case strings.HasPrefix(arg, "-C") && len(arg) > 2:
			to = arg[2:]
		case len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "C") && i+1 < len(args):
			i++
			to = args[i]
		case next < len(operands) && arg == operands[next]:
			t.members = append(t.members, place{dir, arg})
			next++
		}
		if to != "" {
			dir = path.Join(dir, to)
			if strings.HasPrefix(to, "/") {
				dir = to
			}
		}
	}
	return dir
}

func (t *tarrer) set(o getopt.Option) error {
	switch o.Name {
	case "c", "x", "t", "r":
		if t.action != 0 && t.action != o.Name[0] {
			return usage(t.Call, "You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
		}
		t.action = o.Name[0]
	case "f":
		t.archive = o.Value
	case "v":
		t.verbose++
	case "z":
		t.format = gzipFormat
	case "j":
		t.format = bzip2Format
	case "zstd":
		t.format = zstdFormat
	case "J":
		t.format = xzFormat
	case "a":
		t.auto = true
	case "k":
		t.keep = true
	case "skip-old-files":
		t.skip = true
	case "h":
		t.follow = true
	case "O":
		t.toStdout = true
	case "m":
		t.noTouch = true
	case "P":
		t.absolute = true
	case "null":
		t.nulls = true
	case "T":
		t.from = append(t.from, o.Value)
	case "exclude":
		t.exclude = append(t.exclude, o.Value)
	case "X":
		data, err := t.ReadFile(t.ctx, o.Value)
		if err != nil {
			return t.Die(2, "%s: %s", o.Value, command.Reason(err))
		}
		t.exclude = append(t.exclude, strings.Fields(string(data))...)
	case "exclude-vcs":
		t.exclude = append(t.exclude, ".git", ".svn", ".hg", ".gitignore")
	case "strip-components":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return t.Die(2, "%s: Invalid number of elements", o.Value)
		}
		t.strip = n
	case "no-recursion":
		t.flat = true
	case "numeric-owner":
		t.numeric = true
	case "wildcards":
		t.wildcards = true
	case "transform":
		return t.addTransforms(o.Value)
	case "I":
		program, _, _ := strings.Cut(o.Value, " ")
		if t.format = compressors[path.Base(program)]; t.format == nil {
			return t.Die(2, "%s: Cannot exec: No such file or directory", program)
		}
	case "one-top-level":
		if t.top = o.Value; t.top == "" {
			t.top = topOf(t.archive)
		}
	case "add-file":
		t.members = append(t.members, place{"", o.Value})
	case "owner", "group", "mode", "mtime", "N":
		return t.setDisguise(o)
	}
	return nil
}

// excluded says whether --exclude leaves a name out: as a whole, or from any of its slashes on.
func (t *tarrer) excluded(name string) bool {
	name = strings.TrimRight(name, "/")
	for _, p := range t.exclude {
		p = strings.TrimRight(p, "/")
		for rest := name; ; {
			if tool.Glob(p, rest, false) {
				return true
			}
			_, after, more := strings.Cut(rest, "/")
			if !more {
				break
			}
			rest = after
		}
	}
	return false
}

func (t *tarrer) fault(name string, err error) error {
	if tool.Ends(t.ctx, err) {
		return err
	}
	t.Say("%s: Cannot open: %s", name, command.Reason(err))
	t.Status = 2
	return nil
}

// finish says that errors were passed over.
func (t *tarrer) finish() error {
	if t.Status == 2 {
		t.Say("Exiting with failure status due to previous errors")
	}
	return nil
}

// create writes an archive.
func (t *tarrer) create(ctx context.Context) error {
	if err := t.readNames(); err != nil {
		return err
	}
	if len(t.members) == 0 {
		return usage(t.Call, "Cowardly refusing to create an empty archive")
	}
	var out io.Writer = t.Out
	flag := treepath.Read | treepath.Write | treepath.Create | treepath.Truncate
	if t.action == 'r' {
		flag &^= treepath.Truncate
	}
	var self vfs.Ino
	if t.archive != "-" {
		f, err := t.FS.OpenFile(ctx, t.archive, flag, 0o666)
		if err != nil {
			t.Say("%s: Cannot open: %s", t.archive, command.Reason(err))
			return t.Die(2, "Error is not recoverable: exiting now")
		}
		defer f.Close()
		if a, err := f.Stat(); err == nil {
			self = a.Ino
		}
		if t.action == 'r' {
			if err := seekArchiveEnd(f); err != nil {
				return t.Die(2, "%s: %s", t.archive, command.Reason(err))
			}
		}
		out = f
	} else {
		t.listing = t.Stderr
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	if err := t.write(buffered, self); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return t.finish()
}

// seekArchiveEnd goes to the zero blocks that end an archive.
func seekArchiveEnd(f *treepath.File) error {
	at, r := int64(0), tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		now, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		at = now + (h.Size+511)/512*512
	}
	if err := f.Truncate(uint64(at)); err != nil {
		return err
	}
	_, err := f.Seek(at, io.SeekStart)
	return err
}

func (t *tarrer) write(out io.Writer, self vfs.Ino) error {
	if t.auto && t.format == nil {
		switch {
		case strings.HasSuffix(t.archive, ".gz"), strings.HasSuffix(t.archive, ".tgz"):
			t.format = gzipFormat
		case strings.HasSuffix(t.archive, ".zst"), strings.HasSuffix(t.archive, ".tzst"):
			t.format = zstdFormat
		case strings.HasSuffix(t.archive, ".xz"), strings.HasSuffix(t.archive, ".txz"):
			t.format = xzFormat
		}
	}
	var packed io.WriteCloser
	if t.format != nil {
		if t.format.writer == nil {
			return t.Die(2, "compression to %s is not supported", t.format.name)
		}
		var err error
		if packed, err = t.format.writer(out, 0, t.Take); err != nil {
			return err
		}
		out = packed
	}
	w := tar.NewWriter(out)
	for _, m := range t.members {
		fs := t.FS
		if m.dir != "" {
			fs = fs.At(m.dir)
		}
		if err := t.add(w, fs, m.name, self); err != nil {
			return err
		}
	}
	err := w.Close()
	if packed != nil {
		err = errors.Join(err, packed.Close())
	}
	return err
}

func (t *tarrer) readNames() error {
	for _, file := range t.from {
		data, err := t.ReadFile(t.ctx, file)
		if err != nil {
			return t.Die(2, "%s: %s", file, command.Reason(err))
		}
		end := "\n"
		if t.nulls {
			end = "\x00"
		}
		for _, name := range strings.Split(string(data), end) {
			if name != "" {
				t.members = append(t.members, place{"", name})
			}
		}
	}
	return nil
}

// add writes a node and all below it.
func (t *tarrer) add(w *tar.Writer, fs treepath.FS, name string, self vfs.Ino) error {
	if err := t.Step(t.ctx, 5); err != nil {
		return err
	}
	look := fs.Lstat
	if t.follow {
		look = fs.Stat
	}
	a, err := look(t.ctx, name)
	switch {
	case err != nil:
		if tool.Ends(t.ctx, err) {
			return err
		}
		t.Say("%s: Cannot stat: %s", name, command.Reason(err))
		t.Status = 2
		return nil
	case t.excluded(name), a.Type != vfs.TypeDir && a.Mtime.Go().Before(t.newer):
		return nil
	case a.Ino == self:
		t.Say("%s: file is the archive; not dumped", name)
		t.Status = max(t.Status, 1)
		return nil
	}
	h := t.header(fs, name, a)
	if t.verbose > 0 {
		fmt.Fprintln(t.listing, t.shown(name, h))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeReg && a.Size > 0 {
		if err := t.content(w, fs, name, int64(a.Size)); err != nil {
			return err
		}
	}
	if a.Type != vfs.TypeDir || t.flat {
		return nil
	}
	entries, err := fs.ReadDir(t.ctx, name)
	if err != nil {
		return t.fault(name, err)
	}
	for _, e := range entries {
		if err := t.add(w, fs, strings.TrimRight(name, "/")+"/"+e.Name, self); err != nil {
			return err
		}
	}
	return nil
}

// shown is the name that -v prints of a member: before --transform.
func (t *tarrer) shown(name string, h *tar.Header) string {
	if len(t.transforms) == 0 {
		return h.Name
	}
	shown := t.relative(name)
	if h.Typeflag == tar.TypeDir && !strings.HasSuffix(shown, "/") {
		shown += "/"
	}
	return shown
}

func (t *tarrer) header(fs treepath.FS, name string, a vfs.Attr) *tar.Header {
	h := &tar.Header{Name: t.transformed(t.relative(name)), Mode: int64(a.Mode), Uid: int(a.UID), Gid: int(a.GID), ModTime: a.Mtime.Go().Truncate(1e9),
		Format: tar.FormatGNU}
	h.Uname, _ = t.names.User(a.UID)
	h.Gname, _ = t.names.Group(a.GID)
	switch a.Type {
	case vfs.TypeDir:
		h.Typeflag = tar.TypeDir
		if !strings.HasSuffix(h.Name, "/") {
			h.Name += "/"
		}
	case vfs.TypeSymlink:
		h.Typeflag = tar.TypeSymlink
		h.Linkname, _ = fs.Readlink(t.ctx, name)
		h.Linkname = t.transformed(h.Linkname)
	case vfs.TypeFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag, h.Size = tar.TypeReg, int64(a.Size)
		if first, ok := t.links[a.Ino]; ok && a.Nlink > 1 {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			t.links[a.Ino] = h.Name
		}
	}
	t.as.apply(h, a)
	return h
}

// relative cuts what would lead out of the directory off a name, and says so once for each kind.
func (t *tarrer) relative(name string) string {
	if t.absolute {
		return name
	}
	cut := ""
	if i := strings.LastIndex("/"+name+"/", "/../"); i >= 0 {
		end := min(i+3, len(name))
		cut, name = name[:end], name[end:]
	}
	if trimmed := strings.TrimLeft(name, "/"); trimmed != name {
		cut, name = cut+name[:len(name)-len(trimmed)], trimmed
	}
	if cut != "" && cut != t.removed {
		t.removed = cut
		t.Say("Removing leading `%s' from member names", cut)
	}
	if name == "" {
		return "."
	}
	return name
}

// content writes a file's bytes: as many as its header says, whatever happens to it meanwhile.
func (t *tarrer) content(w io.Writer, fs treepath.FS, name string, size int64) error {
	f, err := fs.Open(t.ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := t.format.pack(w, io.LimitReader(t.Count(t.ctx, f), size))
	if err != nil {
		return err
	}
	if n < size {
		t.Say("%s: File shrank by %d bytes; padding with zeros", name, size-n)
		t.Status = max(t.Status, 1)
		_, err = io.CopyN(w, zeros{}, size-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// open returns the archive as a stream of tar, decompressed by what it begins with.
func (t *tarrer) open(fs treepath.FS) (io.Reader, func(), error) {
	var in io.Reader = t.Standard(t.ctx)
	closing := func() {}
	if t.archive != "-" {
		f, err := fs.Open(t.ctx, t.archive)
		if err != nil {
			t.Say("%s: Cannot open: %s", t.archive, command.Reason(err))
			return nil, closing, t.Die(2, "Error is not recoverable: exiting now")
		}
		in, closing = t.Count(t.ctx, f), func() { _ = f.Close() }
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	head, _ := buffered.Peek(6) // of the longest magic
	for _, f := range []*format{gzipFormat, zstdFormat, bzip2Format, xzFormat} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			r, err := f.reader(buffered, t.Take)
			if err != nil {
				return nil, closing, t.Die(2, "%s", f.reason(err))
			}
			inner := closing
			return t.Count(t.ctx, r), func() { _ = r.Close(); inner() }, nil
		}
	}
	if t.format != nil && len(head) > 0 {
		if t.format == xzFormat {
			fmt.Fprintf(t.Stderr, "xz: %s: %s\n", xzPhrases.stdin, xzPhrases.foreign)
		} else {
			fmt.Fprintf(t.Stderr, "\n%s: stdin: not in %s format\n", t.format.name, t.format.name)
		}
		t.Say("Child returned status 1")
		return nil, closing, t.Die(2, "Error is not recoverable: exiting now")
	}
	return buffered, closing, nil
}
