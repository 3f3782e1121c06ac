// Package image writes the container image of the service as an OCI image layout (OCI image-spec 1.1) in one tar file,
// which skopeo, podman and containerd read.
//
// Invariants:
//   - The image has the program, a user, certificates of authorities and empty data folders: no shell, no other program.
//   - The service runs as user 65532 and writes only to these folders.
//   - The bytes depend only on the programs, the version and the commit's time.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is the number of the user and of its group.
const User = 65532

// The folders that the service writes to. Anchors are in DataDir unless AGENTLEDGER_ANCHORS names AnchorsDir.
const (
	DataDir    = "/var/lib/agentledger"
	AnchorsDir = "/var/lib/agentledger-anchors"
)

// Program is the service for one architecture.
type Program struct {
	Arch string // of GOARCH
	File string
}

// Description names the image.
type Description struct {
	Version, Commit string
	Time            time.Time
}

// Write writes the layout of an image for each of the programs.
func Write(target string, d Description, programs []Program) error {
	l := layout{time: d.Time}
	base, err := l.addLayer(baseFiles())
	if err != nil {
		return err
	}
	var manifests []descriptor
	for _, p := range programs {
		m, err := l.addImage(d, p, base)
		if err != nil {
			return fmt.Errorf("build image for %s: %w", p.Arch, err)
		}
		manifests = append(manifests, m)
	}
	index := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
	if err := l.addJSON("index.json", index); err != nil {
		return err
	}
	if err := l.addJSON("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}); err != nil {
		return err
	}
	content, err := tarOf(l.files, d.Time)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o644)
}

// file is a file or, with a slash at the end of its name, a folder.
type file struct {
	name    string
	content []byte
	mode    int64
	owner   int
}

// baseFiles are those of every architecture.
func baseFiles() []file {
	var roots bytes.Buffer
	for r := range bundle.Roots() {
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}) // a buffer accepts everything
	}
	return []file{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nagentledger:x:%d:%[1]d::%s:/sbin/nologin\n", User, DataDir)},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nagentledger:x:%d:\n", User)},
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755},
		{name: DataDir[1:] + "/", mode: 0o700, owner: User},
		{name: AnchorsDir[1:] + "/", mode: 0o700, owner: User}, // a volume gets its owner from here
	}
}

// layout is the files of an OCI image layout.
type layout struct {
	time  time.Time
	files []file
	known map[string]bool
}

// descriptor points to a blob.
type descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int       `json:"size"`
	Platform  *platform `json:"platform,omitempty"`

	unpacked string // digest of a layer before compression
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func (l *layout) addBlob(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digestOf(content), Size: len(content)}
	name := "blobs/sha256/" + d.Digest[len("sha256:"):]
	if l.known == nil {
		l.known = make(map[string]bool)
		l.files = append(l.files, file{name: "blobs/", mode: 0o755}, file{name: "blobs/sha256/", mode: 0o755})
	}
	if !l.known[name] {
		l.known[name] = true
		l.files = append(l.files, file{name: name, mode: 0o644, content: content})
	}
	return d
}

func (l *layout) addJSON(name string, value any) error {
	content, err := json.Marshal(value)
	l.files = append(l.files, file{name: name, mode: 0o644, content: content})
	return err
}

func (l *layout) addLayer(files []file) (descriptor, error) {
	unpacked, err := tarOf(files, l.time)
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := z.Write(unpacked); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	d := l.addBlob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
	d.unpacked = digestOf(unpacked)
	return d, nil
}

// addImage adds the image of one architecture.
func (l *layout) addImage(d Description, p Program, base descriptor) (descriptor, error) {
	program, err := os.ReadFile(p.File)
	if err != nil {
		return descriptor{}, err
	}
	own, err := l.addLayer([]file{{name: "usr/bin/agentledger", content: program, mode: 0o755}})
	if err != nil {
		return descriptor{}, err
	}
	labels := map[string]string{"org.opencontainers.image.version": d.Version, "org.opencontainers.image.revision": d.Commit,
		"org.opencontainers.image.title": "agentledger", "org.opencontainers.image.created": d.Time.Format(time.RFC3339)}
	config, err := json.Marshal(map[string]any{
		"created": d.Time.Format(time.RFC3339), "architecture": p.Arch, "os": "linux",
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%[1]d", User), "Entrypoint": []string{"/usr/bin/agentledger"}, "Cmd": []string{"serve"},
			"Env": []string{"PATH=/usr/bin", "AGENTLEDGER_DATA=" + DataDir}, "WorkingDir": "/",
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}}, "Volumes": map[string]any{DataDir: struct{}{}}, "Labels": labels,
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{base.unpacked, own.unpacked}},
	})
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config":      l.addBlob("application/vnd.oci.image.config.v1+json", config),
		"layers":      []descriptor{base, own},
		"annotations": labels})
	if err != nil {
		return descriptor{}, err
	}
	m := l.addBlob("application/vnd.oci.image.manifest.v1+json", manifest)
	m.Platform = &platform{Architecture: p.Arch, OS: "linux"}
	return m, nil
}

// tarOf returns a tar file of files, in their order.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Uid: f.owner, Gid: f.owner, ModTime: at,
			Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
