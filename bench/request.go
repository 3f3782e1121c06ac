package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// get returns the bytes of a GET request.
func get(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench.example\r\n\r\n", path)
}

// public returns a GET request for a page of the public log, by slug.
func (m *member) public(page string) []byte { return get("/v1/public/orgs/" + string(m.Slug) + page) }

// proof returns a request for an inclusion proof at the head.
func (m *member) proof(leaf int) []byte {
	return m.public(fmt.Sprint("/transparency/inclusion?log_index=", leaf))
}

// tiled returns a GET request for a file of the tiled log.
func (m *member) tiled(path string) []byte {
	return get("/o/" + m.OrganizationID.String() + "/" + path)
}

// tile returns a request for a full tile of leaf hashes.
func (m *member) tile(n int) []byte {
	return m.tiled(tlog.Tile{Index: uint64(n), Width: tlog.TileWidth}.Path())
}

// withHeader adds a header to a request without a body.
func withHeader(request []byte, name, value string) []byte {
	return fmt.Appendf(nil, "%s%s: %s\r\n\r\n", request[:len(request)-len("\r\n")], name, value)
}

// post returns a POST request with the member's ingest key.
func (m *member) post(path, media string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, m.IngestKey.Secret, media, len(body), body)
}

// question returns a request for a decision on a refund of an order.
func (m *member) question(order int) []byte {
	return m.post("/v1/ingest/policy/evaluate", mediaJSON, fmt.Appendf(nil,
		`{"organization_id":"%s","agent_id":"%s","tool_name":"acme.payments.refund","payload":{"amount_usd":84.5,"currency":"USD","order_id":"A-%d"}}`,
		m.OrganizationID, m.Agent.AgentID, order))
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

// posts returns n requests of one signed event each.
func posts(prefix string, n int, of func(i int) *member) ([][]byte, error) {
	return lines(1).posts(prefix, n, of)
}

// lines is the number of events of a request. A request of one event uses the route for single events.
type lines int

// posts returns n requests; of(i) signs the events of request i.
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

// send sends a request, each of whose events must be new.
func (l lines) send(c *conn, request []byte) error {
	status := http.StatusCreated
	if l > 1 {
		status = http.StatusOK
	}
	body, err := c.Expect(status, request)
	if err == nil && bytes.Count(body, []byte(`"status":"created"`)) != int(l) {
		err = fmt.Errorf("an event was refused: %.300s", body)
	}
	return err
}

// always returns the same member for every event.
func always(m *member) func(int) *member { return func(int) *member { return m } }
