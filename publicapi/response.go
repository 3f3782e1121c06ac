package publicapi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// Values of Cache-Control.
const (
	immutable  = "public, max-age=31536000, immutable"
	revalidate = "no-cache"
	never      = "no-store"
)

const mediaText = "text/plain; charset=utf-8"

// response is the successful response to a request.
type response struct {
	media string // Content-Type
	cache string // Cache-Control
	body  []byte

	vary   string // Vary, or ""
	coding string // Content-Encoding, or ""
	tag    string // the ETag; if "", it is computed
	length string // Content-Length; if "", it is computed
}

// newJSONResponse returns v in JSON.
func newJSONResponse(v any, cache string) (response, error) {
	body, err := json.Marshal(v)
	return response{media: edge.MediaJSON, cache: cache, body: body}, err
}

// entityTag returns the ETag. It is strong: it depends on the bytes, so each content coding has another one.
func (p response) entityTag() string {
	if p.tag != "" {
		return p.tag
	}
	return tagOf(sha256.Sum256(p.body))
}

func tagOf(sum [sha256.Size]byte) string {
	var tag [2 + 32]byte
	return string(append(hex.AppendEncode(append(tag[:0], '"'), sum[:16]), '"'))
}

// headers sets headers with a single allocation for all values, where http.Header.Set needs one for each. Names must be
// in canonical form.
type headers struct {
	of     http.Header
	values []string
}

func newHeaders(w http.ResponseWriter) headers {
	const most = 6 // of a response
	return headers{w.Header(), make([]string, 0, most)}
}

func (h *headers) setValue(name, value string) {
	h.values = append(h.values, value)
	last := len(h.values)
	h.of[name] = h.values[last-1 : last : last]
}

// writeTo writes the response to GET or HEAD, or 304 if the client has the same bytes.
func (p response) writeTo(w http.ResponseWriter, r *http.Request) {
	h := newHeaders(w)
	if p.vary != "" {
		h.setValue("Vary", p.vary)
	}
	h.setValue("Cache-Control", p.cache)
	if p.cache != never {
		etag := p.entityTag()
		h.setValue("Etag", etag)
		if edge.MatchesTag(r, etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if p.coding != "" {
		h.setValue("Content-Encoding", p.coding)
	}
	h.setValue("Content-Type", p.media)
	if p.length == "" {
		p.length = strconv.Itoa(len(p.body))
	}
	h.setValue("Content-Length", p.length)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(p.body) // the client may have disconnected
	}
}
