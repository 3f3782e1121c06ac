package interop

import (
	"bytes"
	"io"
	"net/http"
)

// bent is a mirror that changes what it serves.
type bent struct {
	to   http.RoundTripper
	bend transport
}

func (b bent) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.to.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	body = b.bend(r.URL.Path, body)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, nil
}
