package openapitest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
)

// exchange is a request and its answer.
type exchange struct {
	request *http.Request
	sent    []byte // the part of the request's body that the handler read
	status  int
	header  http.Header
	body    []byte
}

// tee is a request body that is copied while it is read.
type tee struct {
	io.Reader
	io.Closer
}

// answer forwards an answer and keeps a copy.
type answer struct {
	http.ResponseWriter
	status int
	header http.Header // as it was when the answer began
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.header = status, a.Header().Clone()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.body.Write(b)
	return a.ResponseWriter.Write(b)
}

// Unwrap implements the interface that http.ResponseController uses.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// decodedBody returns the body without its Content-Encoding.
func (x exchange) decodedBody() ([]byte, error) {
	if x.header.Get("Content-Encoding") != "gzip" {
		return x.body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
