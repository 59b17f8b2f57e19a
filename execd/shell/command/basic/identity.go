package basic

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// userName is the user's name: from /etc/passwd, else from USER.
func userName(ctx context.Context, c *tool.Call) string {
	if name, ok := c.Accounts(ctx).User(c.FS.Cred.UID); ok {
		return name
	}
	if name, ok := c.Getenv("USER"); ok && name != "" {
		return name
	}
	return strconv.FormatUint(uint64(c.FS.Cred.UID), 10)
}

func whoami(ctx context.Context, c *tool.Call) error {
	_, err := c.Out.WriteString(userName(ctx, c) + "\n")
	return err
}

var idOptions = getopt.New("agGnruz", "group=g", "groups=G", "name=n", "real=r", "user=u", "zero=z")

func id(ctx context.Context, c *tool.Call) error {
	options, _, err := c.Options(idOptions, 1)
	if err != nil {
		return err
	}
	what, name := "", false
	for _, o := range options {
		switch o.Name {
		case "u", "g", "G":
			what = o.Name
		case "n":
			name = true
		}
	}
	user := userName(ctx, c)
	group, ok := c.Accounts(ctx).Group(c.FS.Cred.GID)
	if !ok {
		group = user
	}
	cred := c.FS.Cred
	switch {
	case what == "" && name:
		return c.Die(1, "cannot print only names or real IDs in default format")
	case what == "":
		fmt.Fprintf(c.Out, "uid=%d(%s) gid=%d(%s) groups=%d(%s)\n", cred.UID, user, cred.GID, group, cred.GID, group)
	case what == "u" && name:
		fmt.Fprintln(c.Out, user)
	case what == "u":
		fmt.Fprintln(c.Out, cred.UID)
	case name:
		fmt.Fprintln(c.Out, group)
	default:
		fmt.Fprintln(c.Out, cred.GID)
	}
	return nil
}

// host is the name that the workspace's /etc/hostname or HOSTNAME gives the machine.
func host(ctx context.Context, c *tool.Call) string {
	if data, err := c.FS.ReadFile(ctx, "/etc/hostname", 1<<10); err == nil {
		if name := strings.TrimSpace(string(data)); name != "" {
			return name
		}
	}
	if name, ok := c.Getenv("HOSTNAME"); ok && name != "" {
		return name
	}
	return "carrel"
}

func hostname(ctx context.Context, c *tool.Call) error {
	_, err := c.Out.WriteString(host(ctx, c) + "\n")
	return err
}

var unameOptions = getopt.New("asnrvmpio", "all=a", "kernel-name=s", "nodename=n", "kernel-release=r",
	"kernel-version=v", "machine=m", "processor=p", "hardware-platform=i", "operating-system=o")

// uname tells of the system that the shell is: Linux as far as programs look.
func uname(ctx context.Context, c *tool.Call) error {
	options, _, err := c.Options(unameOptions, 1)
	if err != nil {
		return err
	}
	const order = "snrvmo"
	values := map[rune]string{
		's': "Linux", 'n': host(ctx, c), 'r': "6.1.0-carrel", 'v': "#1 carrel shell", 'm': "x86_64", 'o': "GNU/Linux",
	}
	want := map[rune]bool{}
	for _, o := range options {
		switch letter := rune(o.Name[0]); letter {
		case 'a':
			for _, l := range order {
				want[l] = true
			}
		case 'p', 'i':
			want['m'] = true
		default:
			want[letter] = true
		}
	}
	if len(want) == 0 {
		want['s'] = true
	}
	var out []string
	for _, l := range order {
		if want[l] {
			out = append(out, values[l])
		}
	}
	_, err = c.Out.WriteString(strings.Join(out, " ") + "\n")
	return err
}

// nproc is one: a script's processes take turns under one bound on work.
func nproc(_ context.Context, c *tool.Call) error {
	_, err := c.Out.WriteString("1\n")
	return err
}
