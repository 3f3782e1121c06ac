package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/http/serving"
)

// operator makes the HTTP calls of an operator's tool: the platform call and, after a sign-in, calls of the console.
type operator struct {
	main, identity string // base URLs
	http           *http.Client
}

func newOperator(main, identity string) (*operator, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	identity, transport := serving.Reach(identity)
	return &operator{main: main, identity: identity, http: &http.Client{Jar: jar, Transport: transport}}, nil
}

// maxAnswer is the maximum size of a response.
const maxAnswer = 1 << 20

// callJSON sends JSON, or no body if body is nil, and reads JSON. It returns a status of 400 or above as an error with the
// text of the response.
func (o *operator) callJSON(ctx context.Context, method, url string, header http.Header, body, answer any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := o.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %d %s", method, r.URL.Path, response.StatusCode, got)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}
