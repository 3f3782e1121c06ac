// Package typescript holds the sources of the TypeScript client that run in browsers as they
// are: the verifier of bundles, heads and evidence packs.
//
// Invariants:
//
//   - The files are those of this folder, byte for byte. No build step lies between, so a
//     reader can compare what a browser runs with the published client.
//   - No file imports one that is not here.
package typescript

import (
	"embed"
	"io/fs"
)

//go:embed src/bytes.js src/errors.js src/canonical src/crypto src/log src/verify
var sources embed.FS

// Verifier returns the files of the verifier. Its entry points are verify/index.js and
// verify/pack.js.
func Verifier() fs.FS {
	below, err := fs.Sub(sources, "src")
	if err != nil {
		panic(err) // the path is a constant
	}
	return below
}
