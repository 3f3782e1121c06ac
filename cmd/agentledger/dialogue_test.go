package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/did"
)

// exchange is a request to the server and the expected response. In texts, <name> stands for a value. In a response, a
// name without a value matches anything, which becomes its value.
type exchange struct {
	shows   string
	token   string // ingest key, or ""
	request string // method and path
	header  string // one more header, "Name: value"
	body    string
	status  int
	want    string // body
}

// dialogue runs exchanges with one server.
type dialogue struct {
	t      testing.TB
	server *process
	values map[string]string
}

// introduce names the values of an organization: <slug.id>, <slug.agent>, <slug.token>, ...
func (d *dialogue) introduce(org foundedOrganization) {
	d.t.Helper()
	w, err := newWorker(d.server.main, org, client.Retry{})
	if err != nil {
		d.t.Fatal(err)
	}
	multikey := did.Multikey(w.signer.Public())
	for name, value := range map[string]string{
		"id": org.OrganizationID.String(), "origin": string(org.Origin), "vkey": org.LogKey, "token": org.IngestKey.Secret,
		"agent": string(org.Agent.AgentID), "key": string(org.Agent.KeyID), "multikey": multikey, "did": "did:key:" + multikey,
	} {
		d.values[string(org.Slug)+"."+name] = value
	}
}

// hold makes the request and compares the response.
func (d *dialogue) hold(e exchange) {
	d.t.Helper()
	response := d.ask(e)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	got := strings.TrimSuffix(string(body), "\n")
	if response.StatusCode != e.status || !d.matches(got, e.want) {
		d.t.Errorf("%s: %s:\ngot  %d %s\nwant %d %s", e.shows, e.request, response.StatusCode, got, e.status, d.fill(e.want))
	}
	if response.StatusCode == http.StatusUnauthorized && response.Header.Get("WWW-Authenticate") != "Bearer" {
		d.t.Errorf("%s: WWW-Authenticate: %q", e.shows, response.Header.Get("WWW-Authenticate"))
	}
}

func (d *dialogue) ask(e exchange) *http.Response {
	d.t.Helper()
	method, path, _ := strings.Cut(d.fill(e.request), " ")
	base := d.server.main
	if strings.HasPrefix(path, "/v1/id/") {
		base = d.server.identity
	}
	r, err := http.NewRequestWithContext(d.t.Context(), method, base+path, strings.NewReader(d.fill(e.body)))
	if err != nil {
		d.t.Fatal(err)
	}
	if e.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.fill(e.token))
	}
	if name, value, ok := strings.Cut(e.header, ": "); ok {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return response
}

var placeholder = regexp.MustCompile(`<[a-z0-9.]+>`)

// fill replaces names that have values.
func (d *dialogue) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := d.values[strings.Trim(name, "<>")]; ok {
			return value
		}
		return name
	})
}

// matches compares, and assigns values to names without one.
func (d *dialogue) matches(got, want string) bool {
	want = d.fill(want)
	names := placeholder.FindAllString(want, -1)
	literals := placeholder.Split(want, -1)
	for i := range literals {
		literals[i] = regexp.QuoteMeta(literals[i])
	}
	// the content of a JSON string
	found := regexp.MustCompile(`^` + strings.Join(literals, `((?:[^"\\]|\\.)*)`) + `$`).FindStringSubmatch(got)
	for i, name := range names {
		if found != nil {
			d.values[strings.Trim(name, "<>")] = found[i+1]
		}
	}
	return found != nil
}

// signed returns an envelope of the organization's agent.
func (d *dialogue) signed(org foundedOrganization, e client.Event) string {
	d.t.Helper()
	w, err := newWorker(d.server.main, org, client.Retry{})
	if err != nil {
		d.t.Fatal(err)
	}
	envelope, err := w.signer.SignEvent(e)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(envelope)
}
