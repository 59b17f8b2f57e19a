package fuzz

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCheckBesideWork checks and collects over and over while processes make and remove what the check looks at.
func TestCheckBesideWork(t *testing.T) {
	d := serve(t, tempDir(t), tempDir(t))
	end := time.Now().Add(time.Duration(number(t, "CARREL_SECONDS", 5)) * time.Second)
	var churners []*child
	for i := range 2 {
		churners = append(churners, d.start("", churner, fmt.Sprint(i)))
	}
	rounds := 0
	for ; time.Now().Before(end); rounds++ {
		d.check("check")
		d.check("gc")
	}
	d.run("", toucher, "stop")
	for _, c := range churners {
		c.finish()
	}
	t.Logf("%d checks", rounds)
	d.verify()
}

// churner makes, syncs, replaces and removes files and directories in a directory of its own until there is a file
// "stop".
var churner = worker("churn", func(args []string) error {
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	var st unix.Stat_t
	for i := 0; unix.Stat("stop", &st) != nil; i++ {
		dir := fmt.Sprintf("%s/%d", args[0], i)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for k := range 20 {
			path := fmt.Sprintf("%s/%d", dir, k)
			stamp := mix(uint64(i)<<20 ^ uint64(k))
			fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			err = errors.Join(unix.Close(fd), writeAt(path, edit{size: 1 + stamp%20_000, stamp: stamp}),
				unix.Setxattr(path, "user.churn", []byte(path), 0), os.Rename(path, path+"-"))
			if err == nil && k%7 == 0 {
				err = syncPath(dir)
			}
			if err != nil {
				return err
			}
		}
		if i >= 20 {
			if err := os.RemoveAll(fmt.Sprintf("%s/%d", args[0], i-20)); err != nil {
				return err
			}
		}
	}
	return nil
})
