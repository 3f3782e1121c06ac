package ingest

import (
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
)

// Version is the version of the API, a date. It also applies to requests without Service-Version.
const Version = "2026-05-18"

const versionHeader = "Service-Version"

// checkVersion checks Service-Version and repeats it in the header of the response.
func (s *Server) checkVersion(w http.ResponseWriter, r *http.Request) error {
	values := r.Header[versionHeader]
	if len(values) > 1 || len(values) == 1 && values[0] != Version {
		return fault.New(fault.Invalid, "Service-Version is not known; known versions: "+Version)
	}
	w.Header()[versionHeader] = s.values.version
	return nil
}

// traceparent returns the span that a request names (W3C Trace Context), or the zero value. The header never fails a
// request: one that is malformed, or sent twice, is ignored.
func traceparent(h http.Header) event.Traceparent {
	values := h["Traceparent"]
	if len(values) != 1 {
		return event.Traceparent{}
	}
	t, _ := event.ParseTraceparent(values[0])
	return t
}

// maxIdempotencyKey bounds the bare form of Idempotency-Key, in bytes.
const maxIdempotencyKey = 255

// idempotencyKey returns Idempotency-Key in its bare form, or "". A value that begins with a quote is an RFC 9651
// string without parameters.
func idempotencyKey(h http.Header) (string, error) {
	values := h["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	key, ok := values[0], len(values) == 1
	if ok && strings.HasPrefix(key, `"`) {
		key, ok = unquoteString(key)
	}
	if !ok || !validIdempotencyKey(key) {
		return "", fault.New(fault.Invalid,
			"Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string")
	}
	return key, nil
}

// unquoteString returns the value of a string as defined in RFC 9651 section 3.3.3.
func unquoteString(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), i == len(s)-1
		case s[i] == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// validIdempotencyKey reports whether s is a valid Idempotency-Key.
func validIdempotencyKey(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= maxIdempotencyKey
}
