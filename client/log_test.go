package client

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

func eventID(t *testing.T, canonical []byte) id.Event {
	t.Helper()
	e, err := event.Parse(canonical, event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e.EventID
}

func TestLog(t *testing.T) {
	s := filled(t, 5)
	for i := range 2 {
		o := s.Organization(i)
		c, _ := dial(t, s, o)
		l := c.Log(o.Slug, o.LogKey())
		old, note, err := l.Checkpoint(t.Context())
		if err != nil || old.Size != 5 || old.Origin != o.Origin || len(note) == 0 {
			t.Fatalf("checkpoint: %+v, %v", old, err)
		}
		if _, err := c.Send(t.Context(), envelope(t, o, Event{})); err != nil {
			t.Fatal(err)
		}
		head, checkpoint, err := l.Head(t.Context())
		if err != nil || head.TreeSize != 6 || checkpoint.Size != 6 {
			t.Fatalf("head: %+v, %v", head, err)
		}
		if _, err := l.Consistency(t.Context(), old, checkpoint); err != nil {
			t.Error(err)
		}
		if _, err := l.Inclusion(t.Context(), 5, *head.LatestLeafHash, checkpoint); err != nil {
			t.Error(err)
		}
		wanted := eventID(t, o.Envelope(3))
		bundle, report, err := l.Bundle(t.Context(), wanted)
		if err != nil || !report.OK || report.EnvelopeOK == nil || bundle.LogIndex != 3 || report.LogKeySource != verify.KeyFromArgument {
			t.Errorf("bundle: %+v, %v", report, err)
		}
	}
}

// The answers of another log, or of the same log under another key, are rejected.
func TestLogOfAnother(t *testing.T) {
	s := filled(t, 4)
	mine, other := s.Organization(0), s.Organization(1)
	c, _ := dial(t, s, mine)
	wrong, right := c.Log(mine.Slug, other.LogKey()), c.Log(mine.Slug, mine.LogKey())
	if _, _, err := wrong.Head(t.Context()); !errors.Is(err, verify.ErrMismatch) {
		t.Errorf("head: got %v", err)
	}
	if _, _, err := wrong.Checkpoint(t.Context()); !errors.Is(err, tlog.ErrSignature) && !errors.Is(err, tlog.ErrMalformed) {
		t.Errorf("checkpoint: got %v", err)
	}
	if _, report, err := wrong.Bundle(t.Context(), eventID(t, mine.Envelope(1))); err != nil || report.OK || report.CheckpointOK {
		t.Errorf("bundle: got %+v, %v", report, err)
	}
	checkpoint, _, err := right.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forked := checkpoint
	forked.Root[0] ^= 1
	if _, err := right.Consistency(t.Context(), forked, checkpoint); !errors.Is(err, verify.ErrMismatch) {
		t.Errorf("consistency from a fork: got %v", err)
	}
	if _, err := right.Inclusion(t.Context(), 1, id.Hash{}, checkpoint); !errors.Is(err, verify.ErrMismatch) {
		t.Errorf("inclusion of another leaf: got %v", err)
	}
	if _, _, err := c.Log(mine.Slug, tlog.VerifierKey{}).Checkpoint(t.Context()); err == nil {
		t.Error("no key: no error")
	}
}

// A service that has lost its log shows a head without the newest entry. The client accepts it only if the service
// states that it does so.
func TestHeadOfAFrozenLog(t *testing.T) {
	s := filled(t, 3)
	for i := range 2 {
		o := s.Organization(i)
		c, _ := dial(t, s, o)
		head, want, err := c.Log(o.Slug, o.LogKey()).Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head.LatestLeafHash, head.LatestPublishedAt = nil, nil
		for fault, ok := range map[string]bool{"": false, "frozen": true} {
			head.Fault = fault
			text, err := json.Marshal(head)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(text)
			}))
			defer server.Close()
			frozen, err := New(Config{BaseURL: server.URL, Token: o.Token})
			if err != nil {
				t.Fatal(err)
			}
			got, checkpoint, err := frozen.Log(o.Slug, o.LogKey()).Head(t.Context())
			if ok && (err != nil || checkpoint != want || got.Fault != fault || got.LatestLeafHash != nil) {
				t.Errorf("fault %q: got %+v, %v", fault, got, err)
			}
			if !ok && !errors.Is(err, verify.ErrMismatch) {
				t.Errorf("fault %q: got %v, want %v", fault, err, verify.ErrMismatch)
			}
		}
	}
}

func TestPublicNotFound(t *testing.T) {
	s := filled(t, 1)
	o := s.Organization(0)
	c, _ := dial(t, s, o)
	nobody := c.Log("nobody", o.LogKey())
	for name, fetch := range map[string]func() error{
		"head":       func() error { _, _, err := nobody.Head(t.Context()); return err },
		"checkpoint": func() error { _, _, err := nobody.Checkpoint(t.Context()); return err },
		"inclusion": func() error {
			_, err := nobody.Inclusion(t.Context(), 0, id.Hash{}, tlog.Checkpoint{Size: 1})
			return err
		},
		"consistency": func() error {
			_, err := nobody.Consistency(t.Context(), tlog.Checkpoint{}, tlog.Checkpoint{})
			return err
		},
		"bundle":   func() error { _, _, err := c.Log(o.Slug, o.LogKey()).Bundle(t.Context(), "evt_none"); return err },
		"keys":     func() error { _, err := c.Keys(t.Context(), "nobody"); return err },
		"tiles":    func() error { _, err := c.FetchCheckpoint(t.Context(), id.Organization{9}); return err },
		"agent":    func() error { _, err := c.AgentDID(t.Context(), "nobody"); return err },
		"did":      func() error { _, err := c.ResolveDID(t.Context(), "did:key:z6Mk"); return err },
		"bad slug": func() error { _, err := c.Keys(t.Context(), "../../o"); return err },
	} {
		var got *Error
		if err := fetch(); !errors.As(err, &got) || got.Status != 404 || got.Message != "Not found" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestKeysAndFetchCheckpoint(t *testing.T) {
	s := filled(t, 2)
	o := s.Organization(1)
	c, _ := dial(t, s, o)
	keys, err := c.Keys(t.Context(), o.Slug)
	if err != nil || len(keys) != 1 || keys[0].VerifierKey != o.LogKey().String() || keys[0].Use != "log" || keys[0].ToSize != nil {
		t.Errorf("keys: got %+v, %v", keys, err)
	}
	checkpoint, err := c.FetchCheckpoint(t.Context(), o.ID)
	if err != nil || checkpoint.Size != 2 || checkpoint.Origin != o.Origin {
		t.Errorf("checkpoint: got %+v, %v", checkpoint, err)
	}
}

func TestDID(t *testing.T) {
	s := filled(t, 0)
	o, other := s.Organization(0), s.Organization(1)
	c, _ := dial(t, s, o)
	d, err := c.AgentDID(t.Context(), o.Agent)
	if err != nil || d.ID != o.DID() || d.ID == other.DID() {
		t.Errorf("agent: got %+v, %v", d, err)
	}
	for _, name := range []string{o.DID(), "did:web:log.example:v1:public:agents:agt_1"} {
		d, err := c.ResolveDID(t.Context(), name)
		if err != nil || d.ID != name || len(d.VerificationMethod) == 0 {
			t.Errorf("%s: got %+v, %v", name, d, err)
		}
	}
}

// The document of another key, and a document that its key does not expand to, are rejected.
func TestDIDMutated(t *testing.T) {
	s := filled(t, 0)
	honest, _ := dial(t, s, s.Organization(0))
	real, err := honest.sendWithRetries(t.Context(), call{method: http.MethodGet, path: "/v1/public/did/" + s.Organization(0).DID()})
	if err != nil {
		t.Fatal(err)
	}
	mine, other := s.Organization(0).DID(), s.Organization(1).DID()
	for name, body := range map[string]string{
		"another key":        strings.ReplaceAll(string(real), strings.TrimPrefix(mine, "did:key:"), strings.TrimPrefix(other, "did:key:")),
		"no methods":         `{"id":"` + mine + `"}`,
		"relationship taken": strings.Replace(string(real), `"authentication"`, `"authentications"`, 1),
		"empty":              `{}`,
	} {
		bent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		c, err := New(Config{BaseURL: bent.URL})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := c.ResolveDID(t.Context(), mine); err == nil {
			t.Errorf("%s: got %+v", name, d)
		}
		bent.Close()
	}
}

// A did:web document that gives the DID to somebody else is rejected.
func TestForeignMethodsOfDID(t *testing.T) {
	const name = "did:web:log.example:v1:public:agents:agt_1"
	s := filled(t, 0)
	honest, _ := dial(t, s, s.Organization(0))
	real, err := honest.sendWithRetries(t.Context(), call{method: http.MethodGet, path: "/v1/public/did/" + name})
	if err != nil {
		t.Fatal(err)
	}
	var whole did.Document
	if err := json.Unmarshal(real, &whole); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*did.Document){
		"another controller": func(d *did.Document) { d.VerificationMethod[0].Controller = "did:web:evil.example" },
		"no controller":      func(d *did.Document) { d.VerificationMethod[0].Controller = "" },
		"another's method":   func(d *did.Document) { d.VerificationMethod[0].ID = "did:web:evil.example#key-1" },
		"a relationship":     func(d *did.Document) { d.Authentication = append(d.Authentication, "did:web:evil.example#key-1") },
		"a missing method":   func(d *did.Document) { d.CapabilityInvocation = []string{name + "#none"} },
	} {
		changed := whole
		changed.VerificationMethod = slices.Clone(whole.VerificationMethod)
		change(&changed)
		body, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		bent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
		c, err := New(Config{BaseURL: bent.URL})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := c.ResolveDID(t.Context(), name); !errors.Is(err, verify.ErrMismatch) {
			t.Errorf("%s: got %+v, %v", what, d, err)
		}
		bent.Close()
	}
}

// FetchCheckpoint finds the log that continues, and follows no link to another organization's logs or in a circle.
func TestFetchCheckpointFollowsTheLine(t *testing.T) {
	o, other := id.Organization{1}, id.Organization{2}
	line := func(o id.Organization, number string) string { return "/o/" + o.String() + number }
	note := func(size id.Index) string {
		root := tlog.LeafHash([]byte{byte(size)})
		return fmt.Sprintf("log.example/o/x\n%d\n%s\n\n\u2014 log.example/o/x %s\n", size, base64.StdEncoding.EncodeToString(root[:]), base64.StdEncoding.EncodeToString(make([]byte, 68)))
	}
	for name, c := range map[string]struct {
		answers map[string]string // by path
		want    id.Index          // 0: an error
	}{
		"one log":              {map[string]string{line(o, "/checkpoint"): note(7)}, 7},
		"two logs":             {map[string]string{line(o, "/successor"): line(o, "/2"), line(o, "/checkpoint"): note(7), line(o, "/2/checkpoint"): note(3)}, 3},
		"three logs":           {map[string]string{line(o, "/successor"): line(o, "/2"), line(o, "/2/successor"): line(o, "/3"), line(o, "/3/checkpoint"): note(1)}, 1},
		"another organization": {map[string]string{line(o, "/successor"): line(other, "/2"), line(o, "/2/checkpoint"): note(3), line(other, "/2/checkpoint"): note(9)}, 0},
		"itself":               {map[string]string{line(o, "/successor"): line(o, ""), line(o, "/checkpoint"): note(7)}, 0},
		"two steps at once":    {map[string]string{line(o, "/successor"): line(o, "/3"), line(o, "/3/checkpoint"): note(7)}, 0},
		"no checkpoint":        {map[string]string{line(o, "/checkpoint"): "x"}, 0},
		"nothing":              {nil, 0},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, there := c.answers[r.URL.Path]
			switch {
			case !there:
				http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
			case strings.HasSuffix(r.URL.Path, "/successor"):
				fmt.Fprintf(w, `{"origin":%q,"log_key":"k","record":"{}","envelope":"{}"}`, "log.example"+answer)
			default:
				fmt.Fprint(w, answer)
			}
		}))
		service, err := New(Config{BaseURL: s.URL, Retry: Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := service.FetchCheckpoint(t.Context(), o); got.Size != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s: got %+v, %v, want size %d", name, got, err, c.want)
		}
		s.Close()
	}
}
