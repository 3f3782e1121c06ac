// Package clients builds the packages of the clients for TypeScript and Python, which npm and pip install, from their
// sources. The sources are part of the program, so a running service needs no network, npm or Python for them.
//
// A service builds the packages once, from the sources in its program. The build of a signed release adds the signature of
// their list; other programs have none.
//
// It hides the formats of the packages: the npm tarball, the wheel and the source distribution.
//
// Invariants:
//
//   - A package contains the files that npm pack and setuptools would put into it, with the same content, and equal
//     metadata.
//   - The bytes of a package depend only on the sources and the Go release.
//   - The signature of a release covers exactly the packages of the set.
package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// The patterns name files, because __init__.py is left out of an embedded folder.
//
//go:embed typescript/package.json typescript/README.md typescript/LICENSE typescript/src
//go:embed python/METADATA python/README.md python/pyproject.toml python/src/agentledger/py.typed
//go:embed python/src/agentledger/*.py python/src/agentledger/*/*.py python/src/agentledger/*/*/*.py
var sources embed.FS

// note is the signed note of a release in base64. The linker sets it when a signed release is built (tools/release).
var note string

// Package is a file that npm or pip installs.
type Package struct {
	File    string // such as agentledger-client-1.2.3.tgz
	Name    string // in the registry
	Version string
	Kind    Kind
	Media   string // media type
	Content []byte
	Readme  []byte // Markdown, which the package contains too

	SHA256    string // of Content, in hex
	Integrity string // of Content, as npm compares it (Subresource Integrity)
}

// Kind is the kind of a package.
type Kind string

// The kinds of packages.
const (
	NPM   Kind = "npm"   // for TypeScript and JavaScript
	Wheel Kind = "wheel" // for Python
	Sdist Kind = "sdist" // the same as Wheel, built when it is installed
)

// Set is the packages of one version.
type Set struct {
	Packages []Package // one of each kind, sorted by file name
	Sums     string    // their hashes in the format of sha256sum, in the same order
	Note     []byte    // Sums as a C2SP signed note of the release key; nil for a program that is not a signed release
}

// Find returns the package of a kind.
func (s *Set) Find(k Kind) Package {
	return s.Packages[slices.IndexFunc(s.Packages, func(p Package) bool { return p.Kind == k })]
}

// Read returns the packages of the running program. It builds them once.
var Read = sync.OnceValue(func() *Set { return read(note) })

func read(note string) *Set {
	set, err := Build(sources)
	if err != nil {
		panic(err) // the sources are part of the program, and a test builds them
	}
	signed, err := base64.StdEncoding.DecodeString(note)
	if err == nil && bytes.HasPrefix(signed, []byte(set.Sums+"\n")) { // the signatures are after an empty line
		set.Note = signed
	}
	return set
}

// Build returns the packages of the sources in a copy of this folder, without a note.
func Build(folder fs.FS) (*Set, error) {
	b := &builder{folder: folder}
	set := &Set{Packages: []Package{b.npm(), b.wheel(), b.sdist()}}
	if b.err != nil {
		return nil, fmt.Errorf("build client packages: %w", b.err)
	}
	slices.SortFunc(set.Packages, func(p, q Package) int { return strings.Compare(p.File, q.File) })
	for i := range set.Packages {
		p := &set.Packages[i]
		short, long := sha256.Sum256(p.Content), sha512.Sum512(p.Content)
		p.SHA256 = hex.EncodeToString(short[:])
		p.Integrity = "sha512-" + base64.StdEncoding.EncodeToString(long[:])
		set.Sums += p.SHA256 + "  " + p.File + "\n"
	}
	return set, nil
}

// builder builds packages until the first error.
type builder struct {
	folder fs.FS
	err    error
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) read(name string) []byte {
	content, err := fs.ReadFile(b.folder, name)
	b.fail(err)
	return content
}

// file is a file of a package.
type file struct {
	name    string
	content []byte
}

// files returns the files below a folder, in the order of their names, under the prefix of a package.
func (b *builder) files(prefix, folder string) (files []file) {
	b.fail(fs.WalkDir(b.folder, folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, file{prefix + strings.TrimPrefix(name, folder), b.read(name)})
		}
		return err
	}))
	return files
}

func (b *builder) npm() Package {
	var about struct{ Name, Version string }
	text, readme := b.read("typescript/package.json"), b.read("typescript/README.md")
	b.fail(json.Unmarshal(text, &about))
	files := []file{{"package/LICENSE", b.read("typescript/LICENSE")}, {"package/README.md", readme},
		{"package/package.json", text}}
	files = append(files, b.files("package/src", "typescript/src")...)
	name := strings.ReplaceAll(strings.TrimPrefix(about.Name, "@"), "/", "-") // as npm pack names the file
	return Package{File: name + "-" + about.Version + ".tgz", Name: about.Name, Version: about.Version, Kind: NPM,
		Media: "application/gzip", Content: b.tarGz(files), Readme: readme}
}

// metadata returns the core metadata of the package for Python, whose description is the README.
func (b *builder) metadata() (text []byte, name, version string) {
	head := b.read("python/METADATA")
	for line := range strings.Lines(string(head)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "Name":
			name = value
		case "Version":
			version = value
		}
	}
	return slices.Concat(head, []byte("\n"), b.read("python/README.md")), name, version
}

func (b *builder) wheel() Package {
	const tag = "py3-none-any"
	metadata, name, version := b.metadata()
	about := name + "-" + version + ".dist-info/"
	files := append(b.files(name, "python/src/"+name),
		file{about + "METADATA", metadata},
		file{about + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: agentledger\nRoot-Is-Purelib: true\nTag: " + tag + "\n\n")},
		file{about + "top_level.txt", []byte(name + "\n")})
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	record.WriteString(about + "RECORD,,\n")
	files = append(files, file{about + "RECORD", []byte(record.String())})
	return Package{File: name + "-" + version + "-" + tag + ".whl", Name: name, Version: version, Kind: Wheel,
		Media: "application/zip", Content: b.zip(files), Readme: b.read("python/README.md")}
}

func (b *builder) sdist() Package {
	metadata, name, version := b.metadata()
	root := name + "-" + version
	readme := b.read("python/README.md")
	files := append([]file{{root + "/PKG-INFO", metadata}, {root + "/README.md", readme},
		{root + "/pyproject.toml", b.read("python/pyproject.toml")}},
		b.files(path.Join(root, "src", name), "python/src/"+name)...)
	return Package{File: root + ".tar.gz", Name: name, Version: version, Kind: Sdist, Media: "application/gzip",
		Content: b.tarGz(files), Readme: readme}
}

// packed is the time of all files in packages. It is the one that npm pack sets; zip files have no time before 1980.
var packed = time.Date(1985, time.October, 26, 8, 15, 0, 0, time.UTC)

const fileMode = 0o644

func (b *builder) tarGz(files []file) []byte {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	b.fail(err)
	w := tar.NewWriter(compressed)
	for _, f := range files {
		b.fail(w.WriteHeader(&tar.Header{Name: f.name, Mode: fileMode, Size: int64(len(f.content)), ModTime: packed,
			Format: tar.FormatUSTAR}))
		_, err := w.Write(f.content)
		b.fail(err)
	}
	b.fail(errors.Join(w.Close(), compressed.Close()))
	return out.Bytes()
}

func (b *builder) zip(files []file) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: packed}
		head.SetMode(fileMode)
		part, err := w.CreateHeader(head)
		if err != nil {
			b.fail(err)
			break
		}
		_, err = part.Write(f.content)
		b.fail(err)
	}
	b.fail(w.Close())
	return out.Bytes()
}
