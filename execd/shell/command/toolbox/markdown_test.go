package toolbox_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
)

// No tool that is installed everywhere is to be like, so what html-to-markdown prints is written here: CommonMark.
func TestHTMLToMarkdown(t *testing.T) {
	for _, tt := range []struct{ html, want string }{
		{"", "\n"},
		{"<h1>Title</h1><p>Some <b>bold</b> and <em>soft</em> words.</p>", "# Title\n\nSome **bold** and *soft* words.\n"},
		{`<p>A <a href="https://example.com/x?a=1&amp;b=2">link</a>.</p>`, "A [link](https://example.com/x?a=1&b=2).\n"},
		{"<ul><li>one</li><li>two<ol><li>a</li><li>b</li></ol></li></ul>", "- one\n- two\n  \n  1. a\n  2. b\n"},
		{"<pre><code class=\"language-go\">if a &lt; b {\n}\n</code></pre>", "```go\nif a < b {\n}\n```\n"},
		{"<p>Call <code>f(x)</code><br>now.</p>", "Call `f(x)`  \nnow.\n"},
		{"<blockquote><p>said</p></blockquote><hr>", "> said\n\n* * *\n"},
		{`<img src="a.png" alt="A picture">`, "![A picture](a.png)\n"},
		{"<html><head><style>p {}</style><script>x()</script><title>T</title></head><body><p>text</p></body></html>", "text\n"},
		{"<p>2 * 3 &amp; _not_ # a title</p>", "2 * 3 & \\_not_ # a title\n"},
		{"<p>caf\u00e9 &mdash; &#x1F600;</p>", "caf\u00e9 \u2014 \U0001F600\n"},
		{"<p>never <b>closed", "never **closed**\n"},
		{"<p>one</p><p>  two  </p>\n\n", "one\n\ntwo\n"},
	} {
		f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/"}
		if err := f.WriteFile(t.Context(), "a.html", []byte(tt.html), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{"html-to-markdown a.html", "html-to-markdown < a.html", "cat a.html | html-to-markdown -"} {
			var out, errs bytes.Buffer
			c := shell.Config{Tree: f.Tree, Dir: "/", Stdout: &out, Stderr: &errs, Commands: table}
			if status, err := shell.Run(t.Context(), c, script); status != 0 || err != nil || errs.Len() > 0 {
				t.Errorf("%s of %q: %d, %v, %s", script, tt.html, status, err, &errs)
			}
			if out.String() != tt.want {
				t.Errorf("%s of %q: %q, want %q", script, tt.html, &out, tt.want)
			}
		}
	}
}

func TestHTMLToMarkdownFaults(t *testing.T) {
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/"}
	if err := f.WriteFile(t.Context(), "large.html", []byte(strings.Repeat("<p>x</p>", 1<<20)), 0o666); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"html-to-markdown nofile":     "html-to-markdown: nofile: No such file or directory\n",
		"html-to-markdown large.html": "html-to-markdown: large.html: document is larger than 4194304 bytes\n",
		"html-to-markdown --nosuch":   "html-to-markdown: unrecognized option '--nosuch'\nTry 'html-to-markdown --help' for more information.\n",
	} {
		var out, errs bytes.Buffer
		c := shell.Config{Tree: f.Tree, Dir: "/", Stdout: &out, Stderr: &errs, Commands: table}
		status, err := shell.Run(t.Context(), c, script)
		if status != 1 || err != nil || errs.String() != want || out.Len() > 0 {
			t.Errorf("%s: %d, %v, %q, %q", script, status, err, &errs, &out)
		}
	}
}
