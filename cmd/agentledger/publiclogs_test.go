package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// The pages list the logs if the operator lists them, and find events by their hashes.
func TestPublicLogs(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	orgs := []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil), p.found(t.Context(), "all-logs", nil)}
	if answer, _ := ask(t, http.MethodGet, p.main+"/logs", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a service without a list: got %d", answer.StatusCode)
	}
	w, err := newWorker(p.main, orgs[0], client.Retry{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	name := sendOne(t, w)
	var bundle struct {
		Hash id.Hash `json:"event_hash"`
	}
	if err := json.Unmarshal([]byte(getText(t, p.main+"/v1/public/orgs/red/verify/"+string(name))), &bundle); err != nil {
		t.Fatal(err)
	}
	for slug, want := range map[string]int{"red": http.StatusSeeOther, "blue": http.StatusNotFound} {
		p.wantStatus("/find?log="+slug+"&event="+bundle.Hash.String(), want)
	}
	p.terminate()

	p = startProcess(t, dir, "--log-list-contact", "ops@log.example")
	p.wantListed(t, orgs, "+")
	p.terminate()

	p = startProcess(t, dir, "--log-list-contact", "ops@log.example", "--directory", "all-logs", "tuning.directory_interval=20ms")
	p.wantListed(t, orgs[:1], `href="/log/all-logs"`)
}

// wantStatus waits until a page has a status, without following it.
func (p *process) wantStatus(path string, want int) {
	p.t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := c.Get(p.main + path)
		if err != nil {
			p.t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == want {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: got %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// wantListed waits until the list contains logs, and checks that it contains a text.
func (p *process) wantListed(t *testing.T, orgs []foundedOrganization, text string) {
	p.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		body, missing := getText(t, p.main+"/logs"), ""
		for _, o := range orgs {
			_, path, _ := strings.Cut(string(o.Origin), "/o/")
			if !strings.Contains(body, `href="/o/`+path+`/checkpoint"`) {
				missing = path
			}
		}
		if missing == "" && strings.Contains(body, text) {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("the list lacks %s or %s: %s", missing, text, body)
		}
	}
	p.wantStatus("/", http.StatusOK)
}
