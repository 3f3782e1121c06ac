package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/clients/typescript"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/header"
)

//go:embed assets
var embedded embed.FS

// Assets are the files that pages load, by their paths below the hashed folder.
type Assets struct {
	Folder   string // part of the hash of all files
	Verifier string // hex SHA-256 of the list of the verifier's files
	files    map[string]asset
}

// asset is a file and its compressed form, which is computed on first use.
type asset struct {
	media string
	plain []byte
	gzip  func() []byte
}

// VerifierFolder is the folder of the verifier's files, below the assets folder.
const VerifierFolder = "verifier/"

const sumsFile = "SHA256SUMS" // lists the verifier's files

// ReadAssets returns the pages' own files and the verifier's. It reads and hashes them once per process.
var ReadAssets = sync.OnceValues(readAssets)

func readAssets() (*Assets, error) {
	a := &Assets{files: make(map[string]asset)}
	own, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	ownSums, err := a.addFiles("", own)
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	sums, err := a.addFiles(VerifierFolder, typescript.Verifier())
	if err != nil {
		return nil, fmt.Errorf("read verifier: %w", err)
	}
	a.Verifier = HexSum([]byte(sums))
	a.Folder = HexSum([]byte(ownSums + sums))[:16]
	a.addFile(VerifierFolder+sumsFile, []byte(sums))
	return a, nil
}

// addFiles adds the files of a tree below a folder. It returns their hashes in the format of sha256sum, ordered by
// path.
func (a *Assets) addFiles(folder string, tree fs.FS) (sums string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		sums += HexSum(content) + "  " + name + "\n"
		a.addFile(folder+name, content)
		return nil
	})
	return sums, err
}

func (a *Assets) addFile(name string, content []byte) {
	a.files[name] = asset{mediaFor(name), content, sync.OnceValue(func() []byte { return Compress(content) })}
}

// Compress returns content in gzip.
func Compress(content []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // an invalid level: writing to memory does not fail
	}
	return out.Bytes()
}

func mediaFor(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// HexSum returns the SHA-256 of content in hex.
func HexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// staticImport matches the relative imports of a module that are evaluated before it.
var staticImport = regexp.MustCompile(`(?m)^(?:import|export)\s[^;"]*"(\.\.?/[^"]+)"`)

// Modules returns a script and the modules that it imports, directly or indirectly. A page lists them, so that the
// browser fetches all of them at once.
func (a *Assets) Modules(script string) []string {
	all := []string{script}
	for i := 0; i < len(all); i++ {
		for _, found := range staticImport.FindAllSubmatch(a.Content(all[i]), -1) {
			if name := path.Join(path.Dir(all[i]), string(found[1])); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Content returns the content of a file, or nil if there is no such file.
func (a *Assets) Content(name string) []byte { return a.files[name].plain }

// Answer answers a request for a file. It returns fault.NotFound if the folder has another hash, because that version
// of the files is not available.
func (a *Assets) Answer(r *http.Request, folder, name string) (Answer, error) {
	f, ok := a.files[strings.TrimPrefix(name, "/")]
	if !ok || folder != a.Folder {
		return Answer{}, fault.New(fault.NotFound, "Not found")
	}
	found := Answer{Media: f.media, Cache: Immutable, Vary: "Accept-Encoding", Body: f.plain}
	if header.WantsGzip(r.Header["Accept-Encoding"]) {
		found.Body, found.Coding = f.gzip(), header.Gzip
	}
	return found, nil
}
