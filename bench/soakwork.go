package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
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

// worker connects. Workers of a slice are made one after the other.
func (x *soak) worker(seed int) (*soakWorker, error) {
	conn, err := dialConn(x.service.url())
	if err != nil {
		return nil, err
	}
	x.conns = append(x.conns, conn)
	w := &soakWorker{soak: x, conn: conn, random: rand.New(rand.NewPCG(11, uint64(seed)))}
	w.payload = text(w.random, entrySize/2)
	w.client, err = client.New(client.Config{BaseURL: x.service.url(), Token: x.members[0].Token})
	return w, err
}

// step does step n of the mix: of a hundred steps 40 send an event and two a batch.
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
		return w.ask(http.StatusOK, w.question(m))
	case kind < 96:
		return w.read(who, kind%6)
	case kind < 98:
		return w.ask(http.StatusUnauthorized, stranger)
	case n%1000 == 98:
		return w.approve()
	default:
		return w.ask(http.StatusOK, withCookie(get("/v1/console/events?limit=50"), w.service))
	}
}

// stranger is a request of a client that has no key.
var stranger = []byte("POST " + eventsPath + " HTTP/1.1\r\nHost: bench.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

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
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
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
	done, err := w.askFor(http.StatusOK, w.members[who].post(eventsPath+"/batch", "application/x-ndjson", body))
	if done {
		w.events.Add(soakLines)
	}
	return err
}

// repeat sends an event again, as a client does that got no answer.
func (w *soakWorker) repeat() error {
	if w.last == nil {
		return nil
	}
	return w.ask(http.StatusOK, w.last)
}

func (w *soakWorker) question(m *member) []byte {
	return m.post("/v1/ingest/policy/evaluate", mediaJSON, fmt.Appendf(nil,
		`{"organization_id":"%s","agent_id":"%s","tool_name":"acme.payments.refund","payload":{"amount_usd":84.5,"currency":"USD","order_id":"A-%d"}}`,
		m.Organization, m.Agent, w.random.IntN(1_000_000)))
}

// underWay exceeds the number of events in flight.
const underWay = 4 * soakWorkers * soakLines

// read asks for one of six things of an organization's log.
func (w *soakWorker) read(who, kind int) error {
	l := &library{service: w.service, member: w.members[who]}
	known := int(w.names[who].Load()) - underWay
	if known <= 0 {
		return w.ask(http.StatusOK, get(l.public()+"head"))
	}
	n := w.random.IntN(known)
	switch kind {
	case 0:
		return w.ask(http.StatusOK, l.proof(n))
	case 1:
		return w.ask(http.StatusOK, get(fmt.Sprintf("/v1/public/orgs/%s/verify/k-%d", l.member.slug, n)))
	case 2:
		return w.ask(http.StatusOK, l.tile(n/tlog.TileWidth))
	case 3:
		return w.ask(http.StatusOK, get(l.tiles()+"checkpoint"))
	case 4:
		return w.ask(http.StatusOK, get(l.public()+"head"))
	default:
		return w.ask(http.StatusOK, get(fmt.Sprint(l.public(), "consistency?from=", n+1)))
	}
}

// approve asks for an approval, gives it as the organization's owner, and consumes it as the agent: an approval that
// nobody consumes stays open, and 500 may be open.
func (w *soakWorker) approve() error {
	ctx, m := context.Background(), w.members[0]
	a, err := w.client.AskApproval(ctx, client.ApprovalQuestion{Organization: m.Organization, Agent: m.Agent,
		Tool: "acme.payments.refund", Payload: map[string]any{"amount_usd": 84.5, "currency": "USD", "order": w.random.Int64N(1 << 50)}})
	if err == nil {
		err = w.vote(ctx, a)
	}
	if err == nil {
		_, err = w.client.ConsumeApproval(ctx, m.signer, a)
	}
	if isNoRoom(err) {
		w.refused.Add(1)
		return nil
	}
	return err
}

// isNoRoom reports whether the server refused a step for lack of capacity.
func isNoRoom(err error) bool {
	var refusal *client.Error
	if errors.As(err, &refusal) {
		return refusal.Status == http.StatusTooManyRequests || refusal.Status == http.StatusServiceUnavailable
	}
	return err != nil && strings.Contains(err.Error(), ": 503 ") // of a call as a person
}

// vote gives an approval, after another sign-in when the last one has become too old to vote.
func (w *soakWorker) vote(ctx context.Context, a client.Approval) error {
	vote := func() error {
		body := map[string]any{"vote": "approve", "action_digest": a.ActionDigest}
		return w.service.call(ctx, w.service.url()+"/v1/console/approvals/"+a.ID+"/votes", body, nil)
	}
	err := vote()
	if err == nil || !strings.Contains(err.Error(), "step_up") {
		return err
	}
	if err := w.service.login(ctx); err != nil {
		return err
	}
	return vote()
}

// withCookie adds the session of the organization's owner to a request.
func withCookie(request []byte, v *service) []byte {
	u, err := url.Parse(v.url())
	if err != nil {
		return request
	}
	end := len(request) - len("\r\n")
	out := slices.Clone(request[:end])
	for _, c := range v.http.Jar.Cookies(u) {
		out = fmt.Appendf(out, "Cookie: %s=%s\r\n", c.Name, c.Value)
	}
	return append(out, request[end:]...)
}
