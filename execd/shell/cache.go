package shell

import (
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

// cacheSize is how many entries of a kind are kept; when there are more, all are dropped, which loops over few patterns
// never see.
const cacheSize = 512

// cache keeps what is compiled from a script's texts. It is safe for concurrent use.
type cache struct {
	mu       sync.Mutex // guards what follows
	patterns map[patternKey]*pattern
	regexes  map[patternKey]*regex.Regexp
	globs    map[*syntax.ExtGlob][]globSegment
	exprs    map[string]*arithNode
	texts    map[syntax.ArithmExpr][]arithPart
}

type patternKey struct {
	text string
	fold bool
}

func newCache() *cache {
	return &cache{
		patterns: make(map[patternKey]*pattern), regexes: make(map[patternKey]*regex.Regexp),
		globs: make(map[*syntax.ExtGlob][]globSegment), exprs: make(map[string]*arithNode),
		texts: make(map[syntax.ArithmExpr][]arithPart),
	}
}

// remember returns the entry of a map, made when it is not there.
func remember[K comparable, V any](c *cache, m map[K]V, key K, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := m[key]
	if !ok {
		if len(m) >= cacheSize {
			clear(m)
		}
		v = make()
		m[key] = v
	}
	return v
}

func (c *cache) pattern(text string, fold bool) *pattern {
	if len(text) > 4<<10 {
		return compilePattern(text, fold) // not worth the memory
	}
	return remember(c, c.patterns, patternKey{text, fold}, func() *pattern { return compilePattern(text, fold) })
}

func (c *cache) extGlob(g *syntax.ExtGlob) []globSegment {
	return remember(c, c.globs, g, func() []globSegment { return cutExtGlob(g.Pattern.Value) })
}

func (c *cache) arithText(x syntax.ArithmExpr) []arithPart {
	return remember(c, c.texts, x, func() []arithPart { return arithParts(x) })
}
