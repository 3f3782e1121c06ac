package objects

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer is the response to one request.
type answer struct {
	status   int
	header   http.Header
	body     []byte // of a successful GET
	code     string // of an error response, such as "NoSuchKey", or ""
	repeated bool   // an earlier attempt of the same request may have been carried out
}

// isAbsent reports whether the response means that the object does not exist. A 404 with another cause, such as a proxy
// or a missing bucket, means nothing about the object.
func (a answer) isAbsent() bool { return a.status == http.StatusNotFound && a.code == "NoSuchKey" }

// isTemporary reports whether the error response is temporary.
func (a answer) isTemporary() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusConflict:
		return true
	case http.StatusBadRequest:
		return a.code == "RequestTimeout"
	}
	return a.status >= 500 && a.status != http.StatusNotImplemented
}

// failure returns the error for an unexpected response. Of the server's text it contains only the code.
func (a answer) failure() error {
	status := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", a.status, a.code))
	if a.status >= 300 && a.status < 400 {
		return fmt.Errorf("%s: redirects are not followed, so name the bucket's own region or endpoint", status)
	}
	switch a.code {
	case "RequestTimeTooSkewed":
		return fmt.Errorf("%s: set the clock of this machine or of the server", status)
	case "NotImplemented":
		return fmt.Errorf("%s: %w", status, ErrUnsupported)
	}
	return fmt.Errorf("%s", status)
}

// version returns the strong ETag without its quotes, or "".
func (a answer) version() string {
	tag := a.header.Get("ETag")
	version := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	if strings.HasPrefix(tag, "W/") || !isVersion(version) {
		return ""
	}
	return version
}

// maxRetryAfter bounds the pause that a server can request.
const maxRetryAfter = 5 * time.Second

// retryAfter returns the pause that the server requests, or 0.
func (a answer) retryAfter() time.Duration {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 60))*time.Second, maxRetryAfter)
}

var errorCode = lazyRegexp(`^[A-Za-z0-9.]{1,64}$`)

// parseCode returns the code of an error document, or "".
func parseCode(document []byte) string {
	var parsed struct {
		Code string `xml:"Code"`
	}
	if xml.Unmarshal(document, &parsed) != nil || !errorCode().MatchString(parsed.Code) {
		return ""
	}
	return parsed.Code
}
