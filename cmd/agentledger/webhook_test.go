package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
)

// The real server calls back, and continues after it was killed; addresses of its own network are called only if the
// operator allows it.
func TestCallbacksThroughKills(t *testing.T) {
	type told struct {
		header http.Header
		body   string
	}
	calls := make(chan told, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- told{r.Header, string(body)}
	}))
	defer receiver.Close()
	dir := t.TempDir()
	p := startProcess(t, dir)
	red := p.found(t.Context(), "red", nil)
	r := newRefunder(t, p, red)
	r.requireApproval(t)
	question := r.question()
	question.Callback = receiver.URL
	if _, err := r.client.AskApproval(t.Context(), question); err == nil || !strings.Contains(err.Error(), "callback_url must be a public https address") {
		t.Errorf("loopback, not allowed: got %v", err)
	}
	p.kill()
	p = startProcess(t, dir, "--callout-allow", "127.0.0.0/8")
	r = newRefunder(t, p, red)
	a, err := r.client.AskApproval(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.vote(t, a, "approve"); err != nil {
		t.Fatal(err)
	}
	p.kill()
	p = startProcess(t, dir, "--callout-allow", "127.0.0.0/8")
	r = newRefunder(t, p, red)
	var hooks struct {
		PublicKey string `json:"public_key"`
	}
	if err := r.person.callConsole(t.Context(), "GET", "/webhooks", nil, &hooks); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-calls:
		name, err := client.CheckWebhook(hooks.PublicKey, c.header, []byte(c.body), time.Now())
		if err != nil {
			t.Error(err)
		}
		// A repeated delivery has the same id at first, and is too old later.
		if again, err := client.CheckWebhook(hooks.PublicKey, c.header, []byte(c.body), time.Now()); err != nil || again != name {
			t.Errorf("repeated: got %s, %v; want %s", again, err, name)
		}
		if _, err := client.CheckWebhook(hooks.PublicKey, c.header, []byte(c.body), time.Now().Add(6*time.Minute)); !errors.Is(err, client.ErrWebhook) {
			t.Errorf("repeated later: got %v", err)
		}
		changed := strings.Replace(c.body, "approved", "consumed", 1)
		if _, err := client.CheckWebhook(hooks.PublicKey, c.header, []byte(changed), time.Now()); !errors.Is(err, client.ErrWebhook) {
			t.Errorf("changed: got %v", err)
		}
		if !strings.Contains(c.body, `"type":"approval.approved"`) || !strings.Contains(c.body, a.ID) {
			t.Errorf("got %s", c.body)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("no call\n%s", p.logs)
	}
}

// An endpoint of the organization is notified of a question, signed with its own key, even if the server is killed
// after the question was stored and before the receiver has answered.
func TestEndpointsThroughKills(t *testing.T) {
	type told struct {
		header http.Header
		body   string
	}
	calls, dead := make(chan told, 64), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- told{r.Header, string(body)}
		select {
		case <-dead:
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	dir := t.TempDir()
	p := startProcess(t, dir, "--callout-allow", "127.0.0.0/8")
	red := p.found(t.Context(), "red", nil)
	r := newRefunder(t, p, red)
	r.requireApproval(t)
	var endpoint struct {
		ID        string `json:"endpoint_id"`
		PublicKey string `json:"public_key"`
	}
	body := map[string]any{"url": receiver.URL + "/secret", "events": []string{"approval.pending"}}
	if err := r.person.callConsole(t.Context(), "POST", "/webhooks", body, &endpoint); err != nil {
		t.Fatal(err)
	}
	a, err := r.client.AskApproval(t.Context(), r.question())
	if err != nil {
		t.Fatal(err)
	}
	wait := func() told {
		t.Helper()
		select {
		case c := <-calls:
			return c
		case <-time.After(2 * time.Minute):
			t.Fatalf("no call\n%s", p.logs)
			return told{}
		}
	}
	first := wait() // the receiver has it and has not answered
	p.kill()
	close(dead)
	p = startProcess(t, dir, "--callout-allow", "127.0.0.0/8")
	r = newRefunder(t, p, red)
	second := wait()
	names := map[string]bool{}
	for _, c := range []told{first, second} {
		name, err := client.CheckWebhook(endpoint.PublicKey, c.header, []byte(c.body), time.Now())
		if err != nil {
			t.Error(err)
		}
		names[name] = true
		if !strings.Contains(c.body, `"type":"approval.pending"`) || !strings.Contains(c.body, a.ID) {
			t.Errorf("got %s", c.body)
		}
	}
	if len(names) != 1 {
		t.Errorf("got the ids %v, want one", names)
	}
	var list struct {
		Deliveries []struct {
			Status int `json:"status"`
		} `json:"deliveries"`
	}
	for end := time.Now().Add(time.Minute); len(list.Deliveries) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := r.person.callConsole(t.Context(), "GET", "/webhooks/"+endpoint.ID+"/deliveries", nil, &list); err != nil {
			t.Fatal(err)
		}
	}
	if len(list.Deliveries) != 1 || list.Deliveries[0].Status != 200 {
		t.Errorf("log: got %+v", list)
	}
	if strings.Contains(p.logs.String(), "/secret") {
		t.Error("the log contains the address")
	}
}
