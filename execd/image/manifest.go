package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// layoutFile is what makes a directory a layout.
const layoutFile = "oci-layout"

// descriptor is a reference to a blob.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// document is an index or a manifest: which, its fields say.
type document struct {
	Manifests []descriptor `json:"manifests"`
	Config    *descriptor  `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// config is what is known of an image.
type config struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Env []string `json:"Env"`
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// manifest is an image that can be unpacked.
type manifest struct {
	digest string // of the config
	config config
	layers []string // names of their blobs in the source
}

// readManifest finds the image for this machine.
func readManifest(from source) (*manifest, error) {
	b, err := readDocument(from, "index.json")
	if errors.Is(err, vfs.ErrNotExist) {
		return readSaved(from)
	}
	if err != nil {
		return nil, err
	}
	var index document
	if err := decode(b, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	return index.find(from, maxDepth)
}

// find looks for an image in an index, and in those in it.
func (d *document) find(from source, depth int) (*manifest, error) {
	if d.Config != nil {
		return d.manifest(from)
	}
	for _, m := range d.Manifests {
		if p := m.Platform; p != nil && (p.OS != "linux" || p.Architecture != runtime.GOARCH) {
			continue
		}
		if depth == 0 {
			return nil, fmt.Errorf("indexes in each other: %w", vfs.ErrTooBig)
		}
		b, err := m.read(from)
		if err != nil {
			return nil, err
		}
		var inner document
		if err := decode(b, &inner); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Digest, err)
		}
		return inner.find(from, depth-1)
	}
	return nil, fmt.Errorf("no image for linux/%s: %w", runtime.GOARCH, vfs.ErrNotSupported)
}

func (d *document) manifest(from source) (*manifest, error) {
	b, err := d.Config.read(from)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	var layers []string
	for _, l := range d.Layers {
		name, err := l.blob()
		if err != nil {
			return nil, err
		}
		layers = append(layers, name)
	}
	return newManifest(b, layers)
}

// readSaved reads what docker save writes.
func readSaved(from source) (*manifest, error) {
	b, err := readDocument(from, "manifest.json")
	if err != nil {
		return nil, fmt.Errorf("neither an OCI image nor a saved one: %w", err)
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := decode(b, &images); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("a tarball of %d images: %w", len(images), vfs.ErrNotSupported)
	}
	if b, err = readDocument(from, images[0].Config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return newManifest(b, images[0].Layers)
}

func newManifest(b []byte, layers []string) (*manifest, error) {
	sum := sha256.Sum256(b)
	m := &manifest{digest: "sha256:" + hex.EncodeToString(sum[:]), layers: layers}
	if err := decode(b, &m.config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	switch c := m.config; {
	case c.OS != "linux" || c.Architecture != runtime.GOARCH:
		return nil, fmt.Errorf("an image for %s/%s: %w", c.OS, c.Architecture, vfs.ErrNotSupported)
	case len(layers) != len(c.RootFS.DiffIDs):
		return nil, fmt.Errorf("%d layers, and digests of %d: %w", len(layers), len(c.RootFS.DiffIDs), vfs.ErrInvalid)
	case len(layers) > maxLayers:
		return nil, fmt.Errorf("%d layers: %w", len(layers), vfs.ErrTooBig)
	}
	for _, e := range m.config.Config.Env {
		if i := strings.IndexByte(e, '='); i <= 0 || strings.IndexByte(e, 0) >= 0 {
			return nil, fmt.Errorf("environment %.100q is not NAME=value: %w", e, vfs.ErrInvalid)
		}
	}
	return m, nil
}

var sha256Digest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// blob is the name of what d refers to.
func (d *descriptor) blob() (string, error) {
	m := sha256Digest.FindStringSubmatch(d.Digest)
	if m == nil {
		return "", fmt.Errorf("digest %q: %w", d.Digest, vfs.ErrNotSupported)
	}
	return "blobs/sha256/" + m[1], nil
}

// read reads a document and compares it with what d says of it.
func (d *descriptor) read(from source) ([]byte, error) {
	name, err := d.blob()
	if err != nil {
		return nil, err
	}
	b, err := readDocument(from, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); "sha256:"+hex.EncodeToString(sum[:]) != d.Digest {
		return nil, fmt.Errorf("%s has other bytes: %w", d.Digest, vfs.ErrCorrupt)
	}
	return b, nil
}
