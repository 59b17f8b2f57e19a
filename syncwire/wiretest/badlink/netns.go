package badlink

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace of its own, with one device.
type Namespace struct {
	file *os.File // the namespace
	tun  *os.File // packets that its device sends can be read here, and what is written here it receives
}

// device is the name of the device in each namespace.
const device = "wire"

var netmask = []byte{255, 255, 255, 0}

func newNamespace(t testing.TB, addr netip.Addr) *Namespace {
	t.Helper()
	n := &Namespace{}
	err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace (this takes root): %w", err)
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		n.tun, err = openTun(t)
		return err
	})
	if err == nil {
		err = n.setAddr(addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.tun.Close()
		n.file.Close()
	})
	return n
}

// In runs f in a thread that is in the namespace: sockets that it opens are there, whoever uses them later. Those that
// goroutines open which it starts are not. It may be called from any goroutine.
func In[T any](n *Namespace, f func() (T, error)) (result T, err error) {
	err = onThread(func() (err error) {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		result, err = f()
		return err
	})
	return result, err
}

// onThread runs f on a thread that ends afterwards, with the namespace that it was in.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, so the thread is not used again
		done <- f()
	}()
	return <-done
}

// setAddr gives the device an address, in place of the one that it has, and a route to its network.
func (n *Namespace) setAddr(addr netip.Addr) error {
	_, err := In(n, func() (none struct{}, err error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return none, err
		}
		defer unix.Close(fd)
		return none, errors.Join(
			configure(fd, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(addr.AsSlice()) }),
			configure(fd, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(netmask) }),
			configure(fd, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil }),
		)
	})
	if err != nil {
		return fmt.Errorf("set address %v: %w", addr, err)
	}
	return nil
}

// dropAddr takes the device its address, and so its route.
func (n *Namespace) dropAddr() error {
	_, err := In(n, func() (none struct{}, err error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return none, err
		}
		defer unix.Close(fd)
		nowhere := netip.IPv4Unspecified()
		return none, configure(fd, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(nowhere.AsSlice()) })
	})
	if err != nil {
		return fmt.Errorf("drop the address: %w", err)
	}
	return nil
}

// configure makes a request about the device (netdevice(7)).
func configure(fd int, request uint, fill func(*unix.Ifreq) error) error {
	r, err := unix.NewIfreq(device)
	if err == nil {
		err = fill(r)
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, request, r)
	}
	return err
}

// tunDevice is the file that makes devices. Where it is missing, in a container for example, a node for it is made.
const tunDevice = "/dev/net/tun"

func openTun(t testing.TB) (*os.File, error) {
	path := tunDevice
	if _, err := os.Stat(path); err != nil {
		path = t.TempDir() + "/tun"
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))); err != nil {
			return nil, fmt.Errorf("make a node for %s: %w", tunDevice, err)
		}
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tunDevice, err)
	}
	r, err := unix.NewIfreq(device)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make a TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), tunDevice), nil
}
