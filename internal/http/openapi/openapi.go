// Package openapi describes the HTTP surfaces of both listeners in one OpenAPI
// 3.1 document, openapi.json, and serves it.
//
// Invariants:
//
//   - Every route is in the document, with every status that it can answer. The
//     tests of the surfaces hold their traffic against it, in both directions
//     (package openapitest).
//   - Object schemas of answers are open: members may come, so clients ignore
//     those that they do not know. Schemas of requests are closed where the
//     service refuses unknown members.
package openapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/internal/http/edge"
)

//go:embed openapi.json
var document string

// Document returns the document, JSON in UTF-8.
func Document() string { return document }

// Path is where the main listener serves the document.
const Path = "/openapi.json"

// Routes adds GET and HEAD of Path to r.
func Routes(r *edge.Router, e *edge.Edge) {
	sum := sha256.Sum256([]byte(document))
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	var table edge.Table[edge.Handler]
	table.Add(edge.GetAndHead, Path, edge.Permission{}, edge.Body{},
		func(w http.ResponseWriter, r *http.Request) error {
			serveDocument(w, r, etag)
			return nil
		}).TakesAnyQuery()
	edge.Mount(r, edge.PlainSurface(e), table)
}

func serveDocument(w http.ResponseWriter, r *http.Request, etag string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag, X-Request-Id")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", etag)
	if known := r.Header.Get("If-None-Match"); known == "*" || strings.Contains(known, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", edge.MediaJSON)
	h.Set("Content-Length", strconv.Itoa(len(document)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(document)) // a client that is gone reads nothing
	}
}
