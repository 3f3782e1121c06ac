package edge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

//go:embed openapi.json
var document string

// OpenAPI returns the document, JSON in UTF-8.
func OpenAPI() string { return document }

// OpenAPIPath is where the main listener serves the document.
const OpenAPIPath = "/openapi.json"

// OpenAPIRoutes adds GET and HEAD of Path to r.
func OpenAPIRoutes(r *Router, e *Edge) {
	sum := sha256.Sum256([]byte(document))
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	var table Table[Handler]
	table.Add(GetAndHead, OpenAPIPath, Permission{}, Body{},
		func(w http.ResponseWriter, r *http.Request) error {
			serveDocument(w, r, etag)
			return nil
		}).TakesAnyQuery()
	Mount(r, PlainSurface(e), table)
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
	h.Set("Content-Type", MediaJSON)
	h.Set("Content-Length", strconv.Itoa(len(document)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(document)) // a client that is gone reads nothing
	}
}
