package vfs

import "strings"

// CheckName returns nil when name can be given to a dirent, else ErrNameTooLong or ErrInvalid.
func CheckName(name string) error {
	switch {
	case len(name) > MaxNameLen:
		return ErrNameTooLong
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return ErrInvalid
	}
	return nil
}
