package worker

import (
	"embed"
	"strings"
)

//go:embed prelude/*.js
var preludeFiles embed.FS

// preludeOrder is in which order the files come. They are one function: each sees what those before it have declared.
var preludeOrder = []string{"host", "event", "bytes", "buffer", "encoding", "clone", "timers", "inspect", "console", "url", "path", "fs",
	"fsmore", "handle", "process", "util", "main"}

// prelude is what the isolate has before the module: it is evaluated once, before the job is known.
func prelude() string {
	var s strings.Builder
	s.WriteString("(() => {\n'use strict';\n")
	for _, name := range preludeOrder {
		b, err := preludeFiles.ReadFile("prelude/" + name + ".js")
		if err != nil {
			panic(err) // it is in the program
		}
		s.Write(b)
	}
	s.WriteString("})();\n")
	return s.String()
}
