package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/tools"
)

// find answers with a tools.FindResult in JSON. The query has the fields of tools.FindArgs, and all=true for looking into
// everything.
func (p plain) find(w http.ResponseWriter, r *http.Request, fs treepath.FS, _ string) error {
	q := r.URL.Query()
	limit, err := numberIn(q, "limit")
	if err != nil {
		return err
	}
	result, err := reader(fs).Find(r.Context(), tools.FindArgs{
		Path: q.Get("path"), Glob: q.Get("glob"), Type: q.Get("type"), After: q.Get("after"), Limit: limit,
		Exclude: excludes(q["exclude"], q.Get("all") == "true"),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, result)
}

// grep answers with a tools.GrepResult in JSON. The query has the fields of tools.GrepArgs, and all=true as find.
func (p plain) grep(w http.ResponseWriter, r *http.Request, fs treepath.FS, _ string) error {
	q := r.URL.Query()
	limit, err := numberIn(q, "limit")
	if err != nil {
		return err
	}
	around, err := numberIn(q, "context")
	if err != nil {
		return err
	}
	result, err := reader(fs).Grep(r.Context(), tools.GrepArgs{
		Pattern: q.Get("pattern"), Fixed: q.Get("fixed") == "true", IgnoreCase: q.Get("ignore_case") == "true",
		Path: q.Get("path"), Glob: q.Get("glob"), Context: around, Files: q.Get("files") == "true", After: q.Get("after"),
		Limit: limit, Exclude: excludes(q["exclude"], q.Get("all") == "true"),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, result)
}

// numberIn is a number of a query, zero when it has none of the name.
func numberIn(q url.Values, name string) (int, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s %q: %w", name, text, vfs.ErrInvalid)
	}
	return n, nil
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone when it fails
	return nil
}
