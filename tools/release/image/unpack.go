package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Config is the configuration of a container.
type Config struct {
	User       string
	Entrypoint []string
	Cmd        []string
	Env        []string
}

var errDigest = errors.New("a blob has another digest than its name")

// Unpack writes the files of the image for an architecture into an empty folder, with their owners if this process may
// set them. It checks each digest.
func Unpack(layoutFile, arch, dir string) (c Config, err error) {
	blobs, err := readLayout(layoutFile)
	if err != nil {
		return c, err
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil {
		return c, fmt.Errorf("read index: %w", err)
	}
	for _, m := range index.Manifests {
		if m.Platform == nil || m.Platform.Architecture != arch {
			continue
		}
		return unpackImage(blobs, m, dir)
	}
	return c, fmt.Errorf("there is no image for %s", arch)
}

func unpackImage(blobs map[string][]byte, m descriptor, dir string) (c Config, err error) {
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := blobOf(blobs, m, &manifest); err != nil {
		return c, err
	}
	var image struct {
		Config Config
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := blobOf(blobs, manifest.Config, &image); err != nil {
		return c, err
	}
	if len(image.RootFS.DiffIDs) != len(manifest.Layers) {
		return c, errors.New("layers and their digests differ in number")
	}
	for i, l := range manifest.Layers {
		packed, ok := blobs[l.Digest]
		if !ok || len(packed) != l.Size {
			return c, fmt.Errorf("layer %s is missing", l.Digest)
		}
		if err := unpackLayer(packed, image.RootFS.DiffIDs[i], dir); err != nil {
			return c, fmt.Errorf("layer %s: %w", l.Digest, err)
		}
	}
	return image.Config, nil
}

// blobOf reads a blob of JSON.
func blobOf(blobs map[string][]byte, d descriptor, into any) error {
	text, ok := blobs[d.Digest]
	if !ok || len(text) != d.Size {
		return fmt.Errorf("blob %s is missing", d.Digest)
	}
	return json.Unmarshal(text, into)
}

// readLayout returns the blobs by digest, and the other files by name.
func readLayout(file string) (map[string][]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	blobs := make(map[string][]byte)
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return blobs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read layout: %w", err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read layout: %w", err)
		}
		name := h.Name
		if filepath.Dir(name) == "blobs/sha256" {
			if name = "sha256:" + filepath.Base(name); digestOf(text) != name {
				return nil, errDigest
			}
		}
		blobs[name] = text
	}
}

func unpackLayer(packed []byte, unpacked, dir string) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	content, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	if digestOf(content) != unpacked {
		return errDigest
	}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = unpackFile(r, h, dir)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, h *tar.Header, dir string) error {
	if !filepath.IsLocal(h.Name) {
		return fmt.Errorf("%s leads outside", h.Name)
	}
	path := filepath.Join(dir, h.Name)
	if h.Typeflag == tar.TypeDir {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
	} else {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, h.FileInfo().Mode().Perm())
}
