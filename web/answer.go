package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// Values of Cache-Control.
const (
	immutable  = "public, max-age=31536000, immutable"
	revalidate = "no-cache"
	never      = "no-store"
)

const mediaHTML = "text/html; charset=utf-8"

// contentPolicy lets a page load from its own origin alone, and run no inline script. Scripts
// can't turn text into markup, because no Trusted Types policy may be made.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// answer is the bytes and headers that a request gets.
type answer struct {
	status   int // 0 is 200
	media    string
	cache    string
	body     []byte
	tag      string // ETag; "" to compute it from the body
	vary     string // the request header that the form follows from; "" for none
	coding   string // Content-Encoding; "" for the bytes as they are
	location string // of a redirection
	file     string // under which a browser saves it; "" to show it
}

// entityTag is strong: it follows from the bytes alone.
func (a answer) entityTag() string {
	sum := sha256.Sum256(a.body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// writeTo answers GET and HEAD, with 304 to a client that has these very bytes.
func (a answer) writeTo(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", a.cache)
	if a.vary != "" {
		h.Set("Vary", a.vary)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.status == http.StatusOK && a.cache != never {
		if a.tag == "" {
			a.tag = a.entityTag()
		}
		h.Set("Etag", a.tag)
		if matchesTag(r.Header["If-None-Match"], a.tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	a.writeBody(w, r)
}

func (a answer) writeBody(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.coding != "" {
		h.Set("Content-Encoding", a.coding)
	}
	if a.file != "" {
		h.Set("Content-Disposition", `attachment; filename="`+a.file+`"`)
	}
	if a.media != "" {
		h.Set("Content-Type", a.media)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.body) // a client that is gone reads nothing
	}
}

// matchesTag applies If-None-Match (RFC 9110 section 13.1.2): weak comparison, so a prefix
// W/ does not count.
func matchesTag(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}
