package git

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// configure is git config. A file that it writes loses its comments.
func (g *call) configure(args []string) error {
	f, err := g.flags(args, "global", "local", "l=list", "get", "unset", "add")
	if err != nil {
		return err
	}
	file := ""
	if f.has("global") {
		home, _ := g.Getenv("HOME")
		file = path.Join("/", home, ".gitconfig")
	} else {
		file = path.Join(g.root, ".git/config")
	}
	switch {
	case f.has("l"):
		return g.listConfig(f, file)
	case len(f.args) == 0:
		return g.failure("no action specified")
	}
	section, sub, key := splitName(f.args[0])
	if key == "" {
		return g.failure("key does not contain a section: %s", f.args[0])
	}
	if len(f.args) == 1 && !f.has("unset") {
		return g.getConfig(f, file)
	}
	c, err := g.fileConfig(file)
	if err != nil {
		return err
	}
	if f.has("unset") {
		if !unsetOption(c, section, sub, key) {
			return tool.Exit(5)
		}
	} else if f.has("add") {
		c.AddOption(section, sub, key, f.args[1])
	} else {
		c.SetOption(section, sub, key, f.args[1])
	}
	var b bytes.Buffer
	if err := config.NewEncoder(&b).Encode(c); err != nil {
		return err
	}
	_, err = g.FS.ReplaceFile(g.ctx, file, &b, 0o666)
	return err
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
	value := ""
	if f.has("global") || f.has("local") {
		c, err := g.fileConfig(file)
		if err != nil {
			return err
		}
		g.repo, g.overrides = &repo{config: c}, nil
	}
	if value = g.setting(f.args[0]); value == "" {
		return tool.Exit(1)
	}
	return g.print("%s\n", value)
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

func unsetOption(c *config.Config, section, sub, key string) bool {
	if !c.HasSection(section) {
		return false
	}
	s := c.Section(section)
	options := &s.Options
	if sub != "" {
		options = &s.Subsection(sub).Options
	}
	before := len(*options)
	*options = slices.DeleteFunc(*options, func(o *config.Option) bool { return o.IsKey(key) })
	if len(s.Options) == 0 && len(s.Subsections) == 0 {
		c.RemoveSection(section)
	}
	return len(*options) < before
}
