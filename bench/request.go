package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// get returns a GET request as it goes over the wire.
func get(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench.example\r\n\r\n", path)
}

// getGzip is get for whoever takes gzip.
func getGzip(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench.example\r\nAccept-Encoding: gzip\r\n\r\n", path)
}

// post returns a POST request with the member's ingest key.
func (m *member) post(path, media string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, m.Token, media, len(body), body)
}

const (
	eventsPath  = "/v1/ingest/events"
	batchPath   = eventsPath + "/batch"
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
)

// event signs one event of entrySize bytes.
func (m *member) event(name, payload string) ([]byte, error) {
	e := client.Event{
		EventID: id.Event(name), TraceID: "trc_bench", ActorPrincipal: "bench", ActionKind: "tool_call",
		Tool: "acme.orders.read", Decision: id.Allow,
	}
	e.Payload = map[string]string{"text": ""}
	bare, err := m.signer.SignEvent(e)
	if err != nil {
		return nil, err
	}
	e.Payload = map[string]string{"text": payload[:max(0, entrySize-len(bare))]}
	return m.signer.SignEvent(e)
}

// events signs n events on all cores, named by prefix and number: event i by the member of(i).
func events(prefix string, n int, of func(i int) *member) ([][]byte, error) {
	payload := text(rand.New(rand.NewPCG(2, 2)), entrySize)
	all := make([][]byte, n)
	workers := runtime.GOMAXPROCS(0)
	var group errgroup.Group
	for w := range workers {
		group.Go(func() (err error) {
			for i := w; i < n && err == nil; i += workers {
				all[i], err = of(i).event(fmt.Sprint(prefix, "-", i), payload)
			}
			return err
		})
	}
	return all, group.Wait()
}

// posts are n signed single events as requests.
func posts(prefix string, n int, of func(i int) *member) ([][]byte, error) {
	return lines(1).posts(prefix, n, of)
}

// lines is how many events a request has. One alone goes to the route of single events.
type lines int

// posts are n requests, the events of request i signed by the member that of(i) is.
func (l lines) posts(prefix string, n int, of func(i int) *member) ([][]byte, error) {
	all, err := events(prefix, n*int(l), func(i int) *member { return of(i / int(l)) })
	if err != nil {
		return nil, err
	}
	path, media := eventsPath, mediaJSON
	if l > 1 {
		path, media = batchPath, mediaNDJSON
	}
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = of(i).post(path, media, bytes.Join(all[i*int(l):(i+1)*int(l)], []byte("\n")))
	}
	return requests, nil
}

// send sends a request. Each event of it has to be new.
func (l lines) send(c *conn, request []byte) error {
	status := http.StatusCreated
	if l > 1 {
		status = http.StatusOK
	}
	body, err := c.Expect(status, request)
	if err == nil && bytes.Count(body, []byte(`"status":"created"`)) != int(l) {
		err = fmt.Errorf("%w: %.300s", errRefused, body)
	}
	return err
}

var errRefused = errors.New("an event was refused")

// always is the one member of every event.
func always(m *member) func(int) *member { return func(int) *member { return m } }
