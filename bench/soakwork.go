package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// soakWorker is one connection of the load.
type soakWorker struct {
	*soak
	conn    *conn
	random  *rand.Rand
	client  *client.Client // of the organization with a policy
	last    []byte         // the latest acknowledged single event, as a request
	payload string
}

// worker connects. Workers of a slice are created one after the other.
func (x *soak) worker(seed int) (*soakWorker, error) {
	w := &soakWorker{soak: x, random: rand.New(rand.NewPCG(11, uint64(seed)))}
	w.payload = text(w.random, entrySize/2)
	var err error
	if w.client, err = client.New(client.Config{BaseURL: x.service.url(), Token: x.members[0].IngestKey.Secret}); err != nil {
		return nil, err
	}
	if w.conn, err = dialConn(x.service.url()); err != nil {
		return nil, err
	}
	x.workers = append(x.workers, w)
	return w, nil
}

// step performs step n of the mix: of 100 steps, 40 send an event and two send a batch.
func (w *soakWorker) step(n int) error {
	who := n / 100 % len(w.members)
	m := w.members[who]
	switch kind := n % 100; {
	case kind < 40:
		return w.sendEvent(who)
	case kind < 42:
		return w.sendBatch(who)
	case kind < 46:
		return w.repeat()
	case kind < 62:
		return w.ask(http.StatusOK, m.question(w.random.IntN(1_000_000)))
	case kind < 96:
		return w.read(who, kind%6)
	case kind < 98:
		return w.ask(http.StatusUnauthorized, unauthenticated)
	case n%1000 == 98:
		return w.approve()
	default:
		return w.ask(http.StatusOK, withHeader(get("/v1/console/events?limit=50"), "Cookie", w.service.session()))
	}
}

// unauthenticated is a request without an ingest key.
var unauthenticated = []byte("POST " + eventsPath + " HTTP/1.1\r\nHost: bench.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

// ask expects a status. A step that the server refuses for lack of capacity is counted and is not an error.
func (w *soakWorker) ask(want int, request []byte) error {
	_, err := w.askFor(want, request)
	return err
}

func (w *soakWorker) askFor(want int, request []byte) (done bool, err error) {
	status, body, err := w.conn.Do(request)
	switch {
	case err != nil:
		return false, err
	case overloaded(status):
		w.refused.Add(1)
		return false, nil
	case status != want:
		return false, fmt.Errorf("status %d, want %d: %.300s\n%.200s", status, want, body, request)
	}
	return true, nil
}

// sign signs the next event of an organization.
func (w *soakWorker) sign(who int) ([]byte, error) {
	n := w.names[who].Add(1) - 1
	return w.members[who].signer.SignEvent(client.Event{
		EventID: id.Event(fmt.Sprint("k-", n)), TraceID: id.Trace(fmt.Sprint("trc_", n/50)), ActorPrincipal: "bench",
		ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]string{"text": w.payload},
	})
}

func (w *soakWorker) sendEvent(who int) error {
	envelope, err := w.sign(who)
	if err != nil {
		return err
	}
	request := w.members[who].post(eventsPath, mediaJSON, envelope)
	done, err := w.askFor(http.StatusCreated, request)
	if done {
		w.last = request
		w.events.Add(1)
	}
	return err
}

const soakLines = 50 // of a batch

func (w *soakWorker) sendBatch(who int) error {
	var body []byte
	for range soakLines {
		envelope, err := w.sign(who)
		if err != nil {
			return err
		}
		body = append(append(body, envelope...), '\n')
	}
	done, err := w.askFor(http.StatusOK, w.members[who].post(batchPath, mediaNDJSON, body))
	if done {
		w.events.Add(soakLines)
	}
	return err
}

// repeat sends an event again, like a client that received no response.
func (w *soakWorker) repeat() error {
	if w.last == nil {
		return nil
	}
	return w.ask(http.StatusOK, w.last)
}

// inFlight exceeds the number of events in flight.
const inFlight = 4 * soakWorkers * soakLines

// read reads one of six resources of an organization's log.
func (w *soakWorker) read(who, kind int) error {
	m := w.members[who]
	known := int(w.names[who].Load()) - inFlight
	if known <= 0 {
		kind = 4
	}
	n := w.random.IntN(max(1, known))
	request := m.public("/transparency/head")
	switch kind {
	case 0:
		request = m.proof(n)
	case 1:
		request = m.public(fmt.Sprint("/verify/k-", n))
	case 2:
		request = m.tile(n / tlog.TileWidth)
	case 3:
		request = m.tiled("checkpoint")
	case 5:
		request = m.public(fmt.Sprint("/transparency/consistency?from=", n+1))
	}
	return w.ask(http.StatusOK, request)
}

// approve asks for an approval, votes for it as the organization's owner, and consumes it as the agent: an approval that
// nobody consumes stays open, and at most 500 may be open.
func (w *soakWorker) approve() error {
	ctx, m := context.Background(), w.members[0]
	a, err := w.client.AskApproval(ctx, client.ApprovalQuestion{Organization: m.OrganizationID, Agent: m.Agent.AgentID,
		Tool: "acme.payments.refund", Payload: map[string]any{"amount_usd": 84.5, "currency": "USD", "order": w.random.Int64N(1 << 50)}})
	if err == nil {
		err = w.vote(ctx, a)
	}
	if err == nil {
		_, err = w.client.ConsumeApproval(ctx, m.signer, a)
	}
	status := 0
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		status = refusal.Status
	} else if refusal, ok := errors.AsType[*statusError](err); ok {
		status = refusal.status
	}
	if overloaded(status) {
		w.refused.Add(1)
		return nil
	}
	return err
}

// overloaded reports whether a status means that the server lacks capacity.
func overloaded(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// vote votes for an approval, after another sign-in if the last one is too old.
func (w *soakWorker) vote(ctx context.Context, a client.Approval) error {
	vote := func() error {
		body := map[string]any{"vote": "approve", "action_digest": a.ActionDigest}
		return w.service.call(ctx, w.service.url()+"/v1/console/approvals/"+a.ID+"/votes", body, nil)
	}
	err := vote()
	if refusal, ok := errors.AsType[*statusError](err); !ok || !strings.Contains(refusal.body, "step_up") {
		return err
	}
	if err := w.service.login(ctx); err != nil {
		return err
	}
	return vote()
}

// session returns the cookies of the organization's owner.
func (v *service) session() string {
	u, err := url.Parse(v.url())
	if err != nil {
		return ""
	}
	var all []string
	for _, c := range v.http.Jar.Cookies(u) {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}
