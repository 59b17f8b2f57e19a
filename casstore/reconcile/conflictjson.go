package reconcile

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Names are bytes, and JSON is text. A name that is not UTF-8 stands beside itself in base64, and as people can read it
// under its own key, where those look who know nothing of that.

// readable is a name as text, with its bytes if that loses any.
func readable(name string) (text string, bytes []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return strings.ToValidUTF8(name, "\uFFFD"), []byte(name)
}

// exact is a name of which there is the text, and its bytes if that has lost any.
func exact(text string, bytes []byte) string {
	if len(bytes) > 0 {
		return string(bytes)
	}
	return text
}

// plainPlace is a place in JSON.
type plainPlace struct {
	Dir   uint64
	Name  string
	Bytes []byte `json:",omitempty"` // when Name is not what it is called
}

// MarshalJSON implements [json.Marshaler].
func (p Place) MarshalJSON() ([]byte, error) {
	j := plainPlace{Dir: uint64(p.Dir)}
	j.Name, j.Bytes = readable(p.Name)
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Place) UnmarshalJSON(b []byte) error {
	var j plainPlace
	err := json.Unmarshal(b, &j)
	*p = Place{Dir: vfs.Ino(j.Dir), Name: exact(j.Name, j.Bytes)}
	return err
}

// recorded is Recorded without its methods.
type recorded Recorded

// plainRecorded is Recorded in JSON.
type plainRecorded struct {
	recorded
	NameBytes []byte `json:",omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (r Recorded) MarshalJSON() ([]byte, error) {
	j := plainRecorded{recorded: recorded(r)}
	j.Name, j.NameBytes = readable(r.Name)
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Recorded) UnmarshalJSON(b []byte) error {
	var j plainRecorded
	err := json.Unmarshal(b, &j)
	j.Name = exact(j.Name, j.NameBytes)
	*r = Recorded(j.recorded)
	return err
}

// listed is Listed without its methods.
type listed Listed

// plainListed is Listed in JSON.
type plainListed struct {
	listed
	PathBytes []byte `json:"path_base64,omitempty"`
	CopyBytes []byte `json:"copy_base64,omitempty"`
	NameBytes []byte `json:"attribute_base64,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (l Listed) MarshalJSON() ([]byte, error) {
	j := plainListed{listed: listed(l)}
	j.Path, j.PathBytes = readable(l.Path)
	j.Copy, j.CopyBytes = readable(l.Copy)
	j.Name, j.NameBytes = readable(l.Name)
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Listed) UnmarshalJSON(b []byte) error {
	var j plainListed
	err := json.Unmarshal(b, &j)
	j.Path, j.Copy, j.Name = exact(j.Path, j.PathBytes), exact(j.Copy, j.CopyBytes), exact(j.Name, j.NameBytes)
	*l = Listed(j.listed)
	return err
}
