package edge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
)

// document describes the HTTP surfaces of both listeners (OpenAPI 3.1).
//
//go:embed openapi.json
var document string

// OpenAPI returns the OpenAPI 3.1 document of both listeners, JSON in UTF-8.
//
// Every route is in the document, with every status that it can return. The tests of the surfaces check their traffic
// against it, in both directions (package openapitest). Object schemas of responses are open, because members may be
// added: clients must ignore those that they do not know. Schemas of requests are closed where the service rejects unknown
// members.
func OpenAPI() string { return document }

// OpenAPIPath is where the main listener serves the document.
const OpenAPIPath = "/openapi.json"

// OpenAPIRoutes adds GET and HEAD of OpenAPIPath to r.
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
	if MatchesTag(r, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", MediaJSON)
	h.Set("Content-Length", strconv.Itoa(len(document)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(document)) // an error means that the client has disconnected
	}
}
