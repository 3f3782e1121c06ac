package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// heard is the events that a receiver got.
type heard struct {
	mu     sync.Mutex
	events map[string]int
}

func (h *heard) note(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.events[name]++
	}
}

func (h *heard) missing(all []string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range all {
		if h.events[name] == 0 {
			n++
		}
	}
	return n
}

// A stream export and an endpoint get each acknowledged event at least once, although the server is killed at random
// moments, and another organization's events reach neither.
func TestFollowersThroughKills(t *testing.T) {
	exported, noticed := &heard{events: map[string]int{}}, &heard{events: map[string]int{}}
	named := regexp.MustCompile(`"stringValue":"((?:red|blue)-[0-9]+-[0-9]+)"`)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hook" {
			var body struct {
				Data struct {
					Event string `json:"event_id"`
				} `json:"data"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			noticed.note(body.Data.Event)
			return
		}
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(unpacked)
		if err != nil {
			t.Error(err)
		}
		for _, found := range named.FindAllSubmatch(text, -1) {
			exported.note(string(found[1]))
		}
	}))
	defer receiver.Close()
	dir := t.TempDir()
	allow := []string{"--callout-allow", "127.0.0.0/8"}
	p := startProcess(t, dir, allow...)
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	person := newRefunder(t, p, red).person
	export := map[string]any{"url": receiver.URL + "/v1/logs", "format": "cloudevents", "encoding": "json"}
	if err := person.callConsole(t.Context(), "PUT", "/stream-export", export, nil); err != nil {
		t.Fatal(err)
	}
	endpoint := map[string]any{"url": receiver.URL + "/hook", "events": []string{"event.stored"}, "agents": []id.Agent{red.Agent.AgentID}}
	if err := person.callConsole(t.Context(), "POST", "/webhooks", endpoint, nil); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	for round := range 4 {
		sendEvents(t, p, blue, fmt.Sprint("blue-", round), 3)
		acknowledged = append(acknowledged, sendEvents(t, p, red, fmt.Sprint("red-", round), 60)...)
		p.kill()
		p = startProcess(t, dir, allow...)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		lost := [2]int{exported.missing(acknowledged), noticed.missing(acknowledged)}
		if lost == [2]int{} {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("of %d events the export lacks %d, the endpoint %d\n%s", len(acknowledged), lost[0], lost[1], p.logs)
		}
	}
	for _, h := range []*heard{exported, noticed} {
		for name := range h.events {
			if name[:4] == "blue" {
				t.Errorf("the other organization's %s was sent", name)
			}
		}
	}
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != 0 {
		t.Errorf("fsck: exit %d\n%s", exit, out)
	}
}

// sendEvents sends n events and returns their ids.
func sendEvents(t *testing.T, p *process, org foundedOrganization, prefix string, n int) (names []string) {
	t.Helper()
	w, err := newWorker(p.main, org, once)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		envelope, err := w.signer.SignEvent(client.Event{
			EventID: id.Event(name), TraceID: "trc", ActorPrincipal: "svc",
			ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]any{"n": i},
		})
		if err == nil {
			_, err = w.client.Send(t.Context(), envelope)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
