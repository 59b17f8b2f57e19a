package fusefs

import (
	"os"
	"testing"
)

var smoke = scenario("smoke", func(c *client) {
	c.must(os.WriteFile("a", []byte("hello"), 0o644))
	b, err := os.ReadFile("a")
	c.must(err)
	if string(b) != "hello" {
		c.errorf("read %q", b)
	}
	c.must(os.Mkdir("d", 0o755))
	c.must(os.Rename("a", "d/b"))
	es, err := os.ReadDir("d")
	c.must(err)
	if len(es) != 1 || es[0].Name() != "b" {
		c.errorf("%v", es)
	}
	c.must(os.RemoveAll("d"))
})

func TestSmoke(t *testing.T) {
	m := mount(t, nil, Options{})
	m.run(t, smoke)
}
