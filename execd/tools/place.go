package tools

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// A place to go on from is the last path or name that was done, or "LINE:PATH" within a file. It travels in JSON, which has
// no other bytes than UTF-8: what is not, or looks like this, is "=" and base64.

// shownPlace is a place as it is given to who is to come back with it.
func shownPlace(place string) string {
	if utf8.ValidString(place) && !strings.HasPrefix(place, "=") {
		return place
	}
	return "=" + base64.RawURLEncoding.EncodeToString([]byte(place))
}

// parsePlace is the inverse of shownPlace.
func parsePlace(shown string) (string, error) {
	encoded, ok := strings.CutPrefix(shown, "=")
	if !ok {
		return shown, nil
	}
	place, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("after %q: %w", shown, vfs.ErrInvalid)
	}
	return string(place), nil
}

// splitPlace parts the line from the path of a place within a file.
func splitPlace(place string) (line int, path string) {
	number, path, ok := strings.Cut(place, ":")
	if n, err := strconv.Atoi(number); ok && err == nil && strings.HasPrefix(path, "/") {
		return n, path
	}
	return 0, place
}
