package git

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var configOptions = []string{"global", "local", "l=list", "get", "get-all", "unset", "unset-all", "add", "replace-all", "remove-section", "bool"}

// configure is git config.
func (g *call) configure(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	file := g.userConfig()
	if here, err := g.FS.RealPath(g.ctx, "."); !f.has("global") && (err != nil || g.around(here) || f.has("local")) {
		if err := g.open(); err != nil {
			return err
		}
		file = path.Join(g.dir, "config")
	} else if !f.has("global") {
		if err := g.outside(); err != nil {
			return err
		}
		if len(f.args) > 1 || f.has("unset") || f.has("unset-all") || f.has("remove-section") {
			return g.fatal("not in a git directory")
		}
	}
	switch {
	case f.has("l"):
		return g.listConfig(f, file)
	case len(f.args) == 0:
		return g.failure("no action specified")
	case f.has("remove-section"):
		section, sub, _ := strings.Cut(f.args[0], ".")
		return g.editConfig(file, func(c *configText) error {
			if !c.removeSection(strings.ToLower(section), sub) {
				return g.fatal("no such section: %s", f.args[0])
			}
			return nil
		})
	}
	section, sub, key := splitName(f.args[0])
	if key == "" || section == "" {
		return g.failure("key does not contain a section: %s", f.args[0])
	}
	if !configKey.MatchString(key) || !configSection.MatchString(section) || strings.Contains(sub, "\n") {
		return g.failure("invalid key: %s", f.args[0])
	}
	if unset := f.has("unset") || f.has("unset-all"); unset || len(f.args) > 1 {
		return g.editConfig(file, func(c *configText) error {
			at := c.find(section, sub, key)
			switch {
			case unset && len(at) == 0:
				return tool.Exit(5)
			case len(at) > 1 && !f.has("unset-all") && !f.has("replace-all") && !f.has("add"):
				g.tell("warning: %s has multiple values\n", f.args[0])
				if !unset {
					g.tell("error: cannot overwrite multiple values with a single value\n"+
						"       Use a regexp, --add or --replace-all to change %s.\n", f.args[0])
				}
				return tool.Exit(5)
			case unset:
				c.unset(at)
			default:
				if f.has("replace-all") && len(at) > 1 {
					c.unset(at[1:])
				}
				c.set(section, sub, f.args[0], f.args[1], f.has("add"))
			}
			return nil
		})
	}
	return g.getConfig(f, file)
}

var (
	configKey     = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)
	configSection = regexp.MustCompile(`^[-a-z0-9]+$`)
)

// editConfig changes a file of the configuration, and what is known of it when it is the repository's.
func (g *call) editConfig(file string, edit func(c *configText) error) error {
	l, err := g.lock(file)
	if err != nil {
		return err
	}
	b, err := g.FS.ReadFile(g.ctx, file, maxConfig)
	if notThere(err) {
		err = nil
	}
	c := parseConfigText(string(b))
	if err == nil {
		err = edit(c)
	}
	if err != nil {
		l.release()
		return err
	}
	if err := l.commit([]byte(c.String())); err != nil || g.repo == nil || g.dir == "" {
		return err
	}
	g.config, err = g.readConfig(path.Join(g.dir, "config"))
	return err
}

// setConfig sets variables of the repository, by turns a name and a value.
func (g *call) setConfig(pairs ...string) error {
	return g.editConfig(path.Join(g.dir, "config"), func(c *configText) error {
		for i := 0; i+1 < len(pairs); i += 2 {
			section, sub, _ := splitName(pairs[i])
			c.set(section, sub, pairs[i], pairs[i+1], false)
		}
		return nil
	})
}

// fileConfig reads one file alone.
func (g *call) fileConfig(file string) (*config.Config, error) {
	c := config.New()
	b, err := g.FS.ReadFile(g.ctx, file, maxConfig)
	if notThere(err) {
		return c, nil
	}
	if err == nil {
		err = config.NewDecoder(bytes.NewReader(b)).Decode(c)
	}
	return c, err
}

func (g *call) getConfig(f *flags, file string) error {
	if f.has("global") || f.has("local") {
		c, err := g.fileConfig(file)
		if err != nil {
			return err
		}
		g.repo, g.overrides = &repo{config: c}, nil
	}
	values := g.settings(normalName(f.args[0]))
	if len(values) == 0 {
		return tool.Exit(1)
	}
	if !f.has("get-all") {
		values = values[len(values)-1:]
	}
	for _, v := range values {
		if f.has("bool") {
			v = map[bool]string{true: "true", false: "false"}[yes(v)]
		}
		_ = g.print("%s\n", v)
	}
	return nil
}

func (g *call) listConfig(f *flags, file string) error {
	c := config.New()
	if g.repo != nil {
		c = g.config
	}
	if f.has("global") || f.has("local") {
		var err error
		if c, err = g.fileConfig(file); err != nil {
			return err
		}
	}
	for _, s := range c.Sections {
		for _, o := range s.Options {
			_ = g.print("%s.%s=%s\n", strings.ToLower(s.Name), strings.ToLower(o.Key), o.Value)
		}
		for _, sub := range s.Subsections {
			for _, o := range sub.Options {
				_ = g.print("%s.%s.%s=%s\n", strings.ToLower(s.Name), sub.Name, strings.ToLower(o.Key), o.Value)
			}
		}
	}
	for _, o := range g.overrides {
		_ = g.print("%s=%s\n", o.name, o.value)
	}
	return nil
}
