package reconcile

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestConflictJSON writes conflicts with names of all kinds of bytes, and reads them again.
func TestConflictJSON(t *testing.T) {
	for _, name := range []string{"file", "f\xff\xfe", "tab\tquote\"", "\uFFFD", "ü", "\xc3", ""} {
		r := Recorded{Number: 7, Time: 9, Conflict: Conflict{
			Kind: ConflictAttribute, Ino: 3, Place: Place{2, name}, Copy: Place{1, "copy" + name}, Other: 5, Name: "user." + name,
			Value: []byte{0xff}, Theirs: true,
		}}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Recorded
		if err := json.Unmarshal(b, &again); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q: %v: %+v is read as %+v", name, err, r, again)
		}
		l := Listed{Number: 7, Kind: "bytes", Path: "/d/" + name, Copy: name, Name: name, Value: []byte{1}}
		if b, err = json.Marshal(l); err != nil {
			t.Fatal(err)
		}
		var back Listed
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, l) {
			t.Errorf("%q: %v: %+v is read as %+v", name, err, l, back)
		}
	}
	// Notes of before names were told exactly.
	var old Recorded
	err := json.Unmarshal([]byte(`{"Number":1,"Time":5,"Kind":"moved","Ino":4,"Place":{"Dir":1,"Name":"a"},"Copy":{"Dir":2,"Name":"b"},`+
		`"Other":0,"Name":"","Value":null}`), &old)
	want := Recorded{Number: 1, Time: 5, Conflict: Conflict{Kind: ConflictMoved, Ino: 4, Place: Place{1, "a"}, Copy: Place{2, "b"}}}
	if err != nil || !reflect.DeepEqual(old, want) {
		t.Errorf("%v: %+v", err, old)
	}
	b, err := json.Marshal(Listed{Number: 1, Kind: "moved", Path: "/a"})
	if err != nil || strings.Contains(string(b), "base64") || !strings.Contains(string(b), `"path":"/a"`) {
		t.Errorf("%v: %s", err, b)
	}
}
