package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mountEntry is a mount as the kernel lists it (proc_pid_mountinfo(5)).
type mountEntry struct{ dir, fstype, source string }

func mountEntries() ([]mountEntry, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(b)), nil
}

func parseMounts(text string) (entries []mountEntry) {
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(left), strings.Fields(right)
		if ok && len(fields) > 4 && len(rest) > 1 {
			entries = append(entries, mountEntry{unescapeMount(fields[4]), rest[0], unescapeMount(rest[1])})
		}
	}
	return entries
}

// unescapeMount decodes the kernel's octal escapes of space, tab, newline and backslash.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mountedOn reports whether something is mounted on dir itself.
func mountedOn(dir string) (bool, error) {
	entries, err := mountEntries()
	for _, e := range entries {
		if e.dir == dir {
			return true, nil
		}
	}
	return false, err
}

// filesystemOf names the filesystem that dir, which is absolute and without symlinks, is in. The later of two mounts
// on one directory hides the other.
func filesystemOf(dir string) string {
	entries, err := mountEntries()
	if err != nil {
		return "unknown"
	}
	best := mountEntry{fstype: "unknown"}
	for _, e := range entries {
		inside, err := filepath.Rel(e.dir, dir)
		if err == nil && inside != ".." && !strings.HasPrefix(inside, "../") && len(e.dir) >= len(best.dir) {
			best = e
		}
	}
	return best.fstype
}
