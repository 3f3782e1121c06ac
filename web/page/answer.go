package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// Values of Cache-Control.
const (
	Immutable  = "public, max-age=31536000, immutable" // for content that never changes at its address
	Revalidate = "no-cache"
	Never      = "no-store"
)

// MediaHTML is the media type of pages.
const MediaHTML = "text/html; charset=utf-8"

// contentPolicy allows a page to load only from its own origin and forbids inline scripts. Scripts cannot turn text
// into markup, because it allows no Trusted Types policy.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Answer is the response to a request.
type Answer struct {
	Status   int // 0 means 200
	Media    string
	Cache    string
	Body     []byte
	Tag      string // ETag; if empty, computed from the body
	Vary     string // the request header on which the content depends; "" if none
	Coding   string // Content-Encoding; "" if the body is not encoded
	Location string // target of a redirect
	Framed   bool   // other sites may show the page in a frame
	File     string // file name under which a browser saves it; "" to display it
}

// EntityTag returns a strong ETag, a hash of the body.
func (a Answer) EntityTag() string {
	sum := sha256.Sum256(a.Body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// WriteTo answers GET and HEAD requests, with 304 if the client has the current content.
func (a Answer) WriteTo(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	policy := contentPolicy
	if a.Framed {
		policy = strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors *", 1)
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", a.Cache)
	if a.Vary != "" {
		h.Set("Vary", a.Vary)
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Status == http.StatusOK && a.Cache != Never {
		if a.Tag == "" {
			a.Tag = a.EntityTag()
		}
		h.Set("Etag", a.Tag)
		if edge.MatchesTag(r, a.Tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	a.writeBody(w, r)
}

func (a Answer) writeBody(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	if a.Coding != "" {
		h.Set("Content-Encoding", a.Coding)
	}
	if a.File != "" {
		h.Set("Content-Disposition", `attachment; filename="`+a.File+`"`)
	}
	if a.Media != "" {
		h.Set("Content-Type", a.Media)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.Body) // the client may have disconnected
	}
}
