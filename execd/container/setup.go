package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/execd/container/launch"
)

// workspaceDir is where the workspace is in a container.
const workspaceDir = "/workspace"

// hostDirs are what is seen of the host's own files, read-only: programs, and no one's data.
var hostDirs = strings.Fields("usr bin sbin lib lib32 lib64 libx32 opt")

// hostEtc are what programs need of /etc. It is a list of what may be seen, not of what must not: secrets come in files
// that nobody has thought of. Of pki it has no more than what is public: keys are beside that.
var hostEtc = strings.Fields(`alternatives bash.bashrc ca-certificates ca-certificates.conf debian_version fonts
	group hosts inputrc java-11-openjdk java-17-openjdk java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias
	locale.conf localtime login.defs lsb-release magic mime.types networks nsswitch.conf os-release passwd perl
	pki/ca-trust/extracted pki/java/cacerts pki/tls/cert.pem pki/tls/certs pki/tls/openssl.cnf
	profile protocols python3 python3.11 python3.12 python3.13 rpc services shells ssl/certs ssl/openssl.cnf terminfo
	texmf timezone xdg`)

// hostHidden are files in hostDirs where programs look for the settings of the whole machine. Those of git, npm and pip are
// where people put the passwords of registries and the tokens of mirrors. A container begins without them; who needs some
// gives it the variables that these programs take, or has a file in the workspace.
var hostHidden = strings.Fields(`usr/etc/gitconfig usr/etc/npmrc usr/local/etc/gitconfig usr/local/etc/npmrc
	usr/local/pip.conf usr/pip.conf`)

// own are the directories of a container that are not its root's.
var own = []string{"dev", "proc", "sys", "tmp", "run", "root", "workspace"}

// workspaceBind is where a container has the workspace that is mounted at mount.
func workspaceBind(mount string) *launch.Bind {
	return &launch.Bind{Source: mount, Target: workspaceDir, Writable: true}
}

// setupFor describes a container whose programs are those of a root directory, or of the host when root is empty, and
// whose workspace is mounted at mount, or comes later when that is empty.
func setupFor(root, mount string, hostNet bool) (launch.Setup, error) {
	s := launch.Setup{Hostname: "carrel", Loopback: !hostNet}
	for _, dir := range own {
		s.Dirs = append(s.Dirs, "/"+dir)
	}
	var err error
	if root == "" {
		err = hostRoot(&s)
	} else {
		err = rootOf(&s, root, nil)
	}
	if err != nil {
		return s, fmt.Errorf("the root of a container: %w", err)
	}
	if hostNet {
		s.Binds = append(s.Binds, launch.Bind{Source: "/etc/resolv.conf", Target: "/etc/resolv.conf", Optional: true})
	}
	if mount != "" {
		s.Binds = append(s.Binds, *workspaceBind(mount))
	}
	for _, dir := range []string{"/tmp", "/run", "/root"} {
		t := launch.Tmpfs{Target: dir, Mode: 0o755, Size: tmpSize}
		if dir == "/tmp" {
			t.Mode = 0o1777
		}
		s.Tmpfs = append(s.Tmpfs, t)
	}
	return s, nil
}

// hostRoot shows what hostDirs and hostEtc name of the host.
func hostRoot(s *launch.Setup) error {
	if err := rootOf(s, "/", hostDirs); err != nil {
		return err
	}
	if err := hide(s, "/", hostHidden); err != nil {
		return err
	}
	s.Dirs = append(s.Dirs, "/etc", "/var", "/home")
	for _, name := range hostEtc {
		path := filepath.Join("/etc", name)
		if target, err := os.Readlink(path); err == nil {
			s.Dirs = append(s.Dirs, filepath.Dir(path))
			s.Links = append(s.Links, launch.Link{Name: path, Target: target})
		} else {
			s.Binds = append(s.Binds, launch.Bind{Source: path, Target: path, Optional: true})
		}
	}
	s.Links = append(s.Links, launch.Link{Name: "/etc/mtab", Target: "/proc/self/mounts"},
		launch.Link{Name: "/var/tmp", Target: "/tmp"}, launch.Link{Name: "/var/run", Target: "/run"})
	return nil
}

// hidden is what covers a file that is not to be seen.
const hidden = "/dev/null"

// hide covers files of a root, of which hostDirs are shown, by an empty one. What a symlink leads to is covered where it is.
func hide(s *launch.Setup, root string, names []string) error {
	for _, name := range names {
		path, err := filepath.EvalSymlinks(filepath.Join(root, name))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR):
			continue // there is none, or none that the container could read
		case err != nil:
			return err
		}
		shown, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if top, _, _ := strings.Cut(shown, "/"); slices.Contains(hostDirs, top) {
			s.Binds = append(s.Binds, launch.Bind{Source: hidden, Target: "/" + shown, Devices: true})
		}
	}
	return nil
}

// rootOf shows the entries of a directory, those of only when that is not nil. Symlinks are made again, so that they lead
// where they lead in the container.
func rootOf(s *launch.Setup, root string, only []string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(own, name) || only != nil && !slices.Contains(only, name) {
			continue
		}
		path := filepath.Join(root, name)
		if e.Type() != fs.ModeSymlink {
			s.Binds = append(s.Binds, launch.Bind{Source: path, Target: "/" + name})
			continue
		}
		target, err := os.Readlink(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.Links = append(s.Links, launch.Link{Name: "/" + name, Target: target})
	}
	return nil
}

// defaultEnv is the environment of every command, before that of its spec. Nothing of the daemon's own is in it.
func defaultEnv(tty bool) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin",
		"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "LANG=C.UTF-8", "TMPDIR=/tmp", "PWD=" + workspaceDir,
	}
	if tty {
		env = append(env, "TERM=xterm-256color")
	}
	return env
}

// environment is the default one with what a spec says in its place.
func environment(spec []string, dir string, tty bool) []string {
	env := defaultEnv(tty)
	for _, e := range append([]string{"PWD=" + dir}, spec...) {
		name, _, _ := strings.Cut(e, "=")
		env = slices.DeleteFunc(env, func(x string) bool { return strings.HasPrefix(x, name+"=") })
		env = append(env, e)
	}
	return env
}
