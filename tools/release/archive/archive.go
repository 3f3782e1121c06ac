// Package archive writes tar.gz and zip files whose bytes depend only on their content.
//
// Invariants:
//   - Files have the order that the caller gives, one time, and owner 0.
package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// File is a file of an archive.
type File struct {
	Name    string // with slashes, from the archive's root
	Source  string // path of its content
	Content []byte // replaces Source unless it is nil
	Mode    fs.FileMode
}

func (f File) read() ([]byte, error) {
	if f.Content != nil {
		return f.Content, nil
	}
	return os.ReadFile(f.Source)
}

// WriteTarGz writes the files into a new file.
func WriteTarGz(target string, files []File, at time.Time) (err error) {
	out, err := os.Create(target)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	w := tar.NewWriter(packed)
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		head := &tar.Header{Name: f.Name, Mode: int64(f.Mode), Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if _, err := w.Write(content); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

// WriteZip writes the files into a new file.
func WriteZip(target string, files []File, at time.Time) (err error) {
	out, err := os.Create(target)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := zip.NewWriter(out)
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		head := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at.UTC()}
		head.SetMode(f.Mode)
		part, err := w.CreateHeader(head)
		if err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if _, err := part.Write(content); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	}
	return w.Close()
}
