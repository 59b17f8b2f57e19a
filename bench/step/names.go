package step

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// smallSize is the size of the files of these steps, in bytes: about that of the median file in source trees.
const smallSize = 1000

// perDir is how many files a directory has where there are many. Trees that people make have fewer still; a directory
// with all of them is the step create.
const perDir = 1000

// nameSteps work on N small files, f0 and on, in the working directory; those of a tree on N files in directories.
var nameSteps = map[string]step{
	"create": {"N", each(createFile)},
	"stat":   {"N", each(statFile)},
	"cat":    {"N", each(readFile)},
	"append": {"N", each(appendFile)},
	"rename": {"N", each(renameFile)},
	"unlink": {"N", each(unlinkFile)},

	"tree-create": {"N", inTree(makeTree)},
	"tree-stat":   {"N", inTree(statTree)},
	"tree-list":   {"N", inTree(listTree)},
	"tree-unlink": {"N", inTree(unlinkTree)},
}

// each times f for every name.
func each(f func(name string, content []byte) error) func(n []int64, t *timer) error {
	return func(n []int64, t *timer) error {
		content := random(smallSize)
		return t.time(func() error {
			for i := range n[0] {
				stamp(content, uint64(i))
				if err := f("f"+strconv.FormatInt(i, 10), content); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func createFile(name string, content []byte) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return wrap("create", name, err)
	}
	return closing(fd, wrap("write", name, writeAll(fd, content)))
}

func statFile(name string, _ []byte) error {
	var st unix.Stat_t
	err := unix.Stat(name, &st)
	if err == nil && st.Size < smallSize {
		err = fmt.Errorf("it has %d bytes", st.Size)
	}
	return wrap("stat", name, err)
}

func readFile(name string, content []byte) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", name, err)
	}
	n, err := readFull(fd, content)
	if err == nil && n < smallSize {
		err = fmt.Errorf("it has %d bytes", n)
	}
	return closing(fd, wrap("read", name, err))
}

func appendFile(name string, content []byte) error {
	fd, err := unix.Open(name, unix.O_APPEND|unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", name, err)
	}
	return closing(fd, wrap("append", name, writeAll(fd, content[:10])))
}

func renameFile(name string, _ []byte) error {
	return wrap("rename", name, unix.Rename(name, "g"+name))
}

func unlinkFile(name string, _ []byte) error { return wrap("unlink", name, unix.Unlink(name)) }

// inTree times f, which is called with the number of files and a directory's prefix for each.
func inTree(f func(dir string, files int64, content []byte) error) func(n []int64, t *timer) error {
	return func(n []int64, t *timer) error {
		content := random(smallSize)
		return t.time(func() error {
			for at := int64(0); at < n[0]; at += perDir {
				stamp(content[8:], uint64(at))
				if err := f("d"+strconv.FormatInt(at/perDir, 10), min(perDir, n[0]-at), content); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func inDir(dir string, files int64, f func(name string) error) error {
	for i := range files {
		if err := f(dir + "/f" + strconv.FormatInt(i, 10)); err != nil {
			return err
		}
	}
	return nil
}

func makeTree(dir string, files int64, content []byte) error {
	if err := unix.Mkdir(dir, 0o755); err != nil {
		return wrap("mkdir", dir, err)
	}
	i := uint64(0)
	return inDir(dir, files, func(name string) error {
		i++
		stamp(content, i)
		return createFile(name, content)
	})
}

func statTree(dir string, files int64, _ []byte) error {
	return inDir(dir, files, func(name string) error { return statFile(name, nil) })
}

func unlinkTree(dir string, files int64, _ []byte) error {
	if err := inDir(dir, files, func(name string) error { return unlinkFile(name, nil) }); err != nil {
		return err
	}
	return wrap("rmdir", dir, unix.Rmdir(dir))
}

// listTree reads the names only, as find does without a test.
func listTree(dir string, files int64, _ []byte) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", dir, err)
	}
	buffer, names := make([]byte, 64<<10), []string{}
	for {
		n, err := unix.Getdents(fd, buffer)
		if err != nil {
			return closing(fd, wrap("list", dir, err))
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
	if int64(len(names)) != files {
		return closing(fd, fmt.Errorf("list %s: %d names, not %d", dir, len(names), files))
	}
	return closing(fd, nil)
}
