package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/clients/typescript"
	"github.com/agentledger/agentledger/internal/http/accept"
)

//go:embed assets
var embedded embed.FS

// assets are the files that pages load, by their paths below the hashed folder.
type assets struct {
	files    map[string]asset
	folder   string // names the state of all files: a part of the hash over them
	verifier string // SHA-256 of the list of the verifier's files, in hex
}

// asset is a file as it is and compressed.
type asset struct {
	media       string
	plain, gzip []byte
}

const (
	verifierFolder = "verifier/"
	sumsFile       = "SHA256SUMS" // of the verifier's files
)

// readAssets reads the pages' own files and the verifier's, and compresses each once.
func readAssets() (*assets, error) {
	a := &assets{files: make(map[string]asset)}
	own, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	ownSums, err := a.addFiles("", own)
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	sums, err := a.addFiles(verifierFolder, typescript.Verifier())
	if err != nil {
		return nil, fmt.Errorf("read verifier: %w", err)
	}
	a.verifier = hexSum([]byte(sums))
	a.folder = hexSum([]byte(ownSums + sums))[:16]
	return a, a.addFile(verifierFolder+sumsFile, []byte(sums))
}

// addFiles adds the files of a tree below a folder. It returns their hashes in the form of
// sha256sum, in the order of their paths.
func (a *assets) addFiles(folder string, tree fs.FS) (sums string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		sums += hexSum(content) + "  " + name + "\n"
		return a.addFile(folder+name, content)
	})
	return sums, err
}

func (a *assets) addFile(name string, content []byte) error {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, failed := w.Write(content)
	if err := errors.Join(failed, w.Close()); err != nil {
		return err
	}
	a.files[name] = asset{mediaOf(name), content, out.Bytes()}
	return nil
}

func mediaOf(name string) string {
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

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// modules returns the verifier's files that every check needs. A page names them, so that the
// browser loads them at once and not one import after the other.
func (a *assets) modules() []string {
	return []string{
		"bytes.js", "errors.js", "canonical/number.js", "canonical/parse.js", "canonical/write.js", "crypto/ed25519.js",
		"crypto/mldsa.js", "crypto/sha256.js", "crypto/shake.js", "log/note.js", "log/policy.js", "log/tree.js",
		"verify/bundle.js", "verify/check.js", "verify/documents.js", "verify/forms.js", "verify/index.js",
		"verify/trust.js", "verify/unknown.js", "verify/words.js",
	}
}

// serveAsset serves assets/{tree}/*. A path with another hash is 404, because its bytes are
// not here.
func (s *Server) serveAsset(r *request) (answer, error) {
	f, ok := s.assets.files[strings.TrimPrefix(chi.URLParam(r.Request, "*"), "/")]
	if !ok || chi.URLParam(r.Request, "tree") != s.assets.folder {
		return answer{}, errNotFound()
	}
	a := answer{media: f.media, cache: immutable, vary: "Accept-Encoding", body: f.plain}
	if accept.WantsGzip(r.Header["Accept-Encoding"]) {
		a.body, a.coding = f.gzip, accept.Gzip
	}
	return a, nil
}
