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

// response is the bytes that one request gets of one thing, in one coding.
type response struct {
	media string // Content-Type
	cache string // Cache-Control
	body  []byte

	vary   string // the request header that the form follows from; empty for none
	coding string // Content-Encoding; empty for the bytes as they are
	tag    string // the ETag, where it is known already
	length string // of the body, where it is written already
}

// newJSONResponse renders v.
func newJSONResponse(v any, cache string) (response, error) {
	body, err := json.Marshal(v)
	return response{media: edge.MediaJSON, cache: cache, body: body}, err
}

// entityTag is strong: it follows from the bytes, or stands for them, so every coding has its own.
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

// headers sets headers with values that lie in one piece of memory, where Set
// takes one for each. Names are in their canonical form.
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

// writeTo answers GET and HEAD, with 304 to a client that has these very bytes.
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
		_, _ = w.Write(p.body) // a client that is gone reads nothing
	}
}
