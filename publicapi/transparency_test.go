package publicapi_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

func TestHeadOfAnEmptyLog(t *testing.T) {
	w := newWorld(t)
	got := read[map[string]any](w, "/v1/public/orgs/red/transparency/head")
	want := map[string]any{
		"organization_slug": "red", "tree_size": 0.0, "latest_log_index": nil, "latest_leaf_hash": nil,
		"latest_published_at": nil, "root_hash": tlog.EmptyRoot().String(), "origin": string(w.red.origin()),
		"checkpoint": string(w.state(&w.red).Checkpoint()),
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d members, want %d", len(got), len(want))
	}
}

func TestHead(t *testing.T) {
	w := newWorld(t)
	last := w.append(&w.red, id.DiscloseRecord, names("e", 3)...)[2]
	w.append(&w.blue, id.DiscloseRecord, "e-0")
	h := read[verify.Head](w, "/v1/public/orgs/red/transparency/head")
	c, err := verify.CheckHead(h, w.state(&w.red).VerifierKey())
	if err != nil {
		t.Fatal(err)
	}
	if c.Size != 3 || *h.LatestLogIndex != 2 || *h.LatestLeafHash != last.EventHash || *h.LatestPublishedAt != last.ReceivedAt {
		t.Errorf("got %+v, want the head of three events", h)
	}
	if _, err := verify.CheckHead(h, w.state(&w.blue).VerifierKey()); err == nil {
		t.Error("the head of one organization is signed by the key of another")
	}
}

func TestCheckpoint(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	for _, target := range []string{"/v1/public/orgs/red/transparency/checkpoint", "/o/" + w.red.id.String() + "/checkpoint"} {
		answer := w.get(target)
		c, err := tlog.OpenCheckpoint(answer.Body.Bytes(), w.state(&w.red).VerifierKey())
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if c.Size != 1 || c.Origin != w.red.origin() || c.Root != w.state(&w.red).Root() {
			t.Errorf("%s: got %+v", target, c)
		}
		if got := answer.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("%s: got Content-Type %q", target, got)
		}
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	logKey := func(o *owner) string {
		return `{"vkey":"` + w.state(o).VerifierKey().String() + `","use":"log","from_size":0,"to_size":null}`
	}
	grants, _, _, err := grantKeys{}.GrantKey(t.Context(), w.red.tenant)
	if err != nil {
		t.Fatal(err)
	}
	for slug, want := range map[string]string{
		"red":  `{"keys":[` + logKey(&w.red) + `,{"vkey":"` + grants.String() + `","use":"grant","from_size":3,"to_size":null}]}`,
		"blue": `{"keys":[` + logKey(&w.blue) + `]}`,
	} {
		if got := w.get("/v1/public/orgs/" + slug + "/transparency/keys").Body.String(); got != want {
			t.Errorf("%s: got %s, want %s", slug, got, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	w := newWorld(t)
	want := "log " + w.state(&w.blue).VerifierKey().String() + " " + publicURL + "/o/" + w.blue.id.String() + "\nquorum none\n"
	if got := w.get("/v1/public/orgs/blue/transparency/policy").Body.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Responses that may change are revalidated each time, with a 304.
func TestRevalidation(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	for _, target := range w.revalidated() {
		answer := w.get(target)
		etag := answer.Header().Get("ETag")
		if got := answer.Header().Get("Cache-Control"); got != "no-cache" || len(etag) != 34 || etag[0] != '"' {
			t.Errorf("%s: got Cache-Control %q, ETag %s", target, got, etag)
		}
		for _, condition := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			again := w.do(http.MethodGet, target, "If-None-Match: "+condition)
			if again.Code != http.StatusNotModified || again.Body.Len() != 0 || again.Header().Get("ETag") != etag {
				t.Errorf("%s with %s: got %d %s", target, condition, again.Code, again.Body)
			}
		}
		if got := w.do(http.MethodGet, target, `If-None-Match: "other"`).Code; got != http.StatusOK {
			t.Errorf("%s with another ETag: got %d", target, got)
		}
	}
	target := "/v1/public/orgs/red/transparency/head"
	before := w.get(target).Header().Get("ETag")
	w.append(&w.red, id.DiscloseRecord, "two")
	if got := w.do(http.MethodGet, target, "If-None-Match: "+before).Code; got != http.StatusOK {
		t.Errorf("head after an append: got %d, want 200", got)
	}
}

// The statement of a log key is a bundle that the previous key proves, even after that key was retired.
func TestKeyStatement(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	keys := "/v1/public/orgs/red/transparency/keys/"
	first := w.state(&w.red).VerifierKey()
	before := []tlog.VerifierKey{first}
	for range 2 { // each rotation is proved by the key before it
		for _, step := range []func(context.Context, id.Tenant, string) (log.LogKey, error){w.orgs.RotateLogKey, w.orgs.RetireLogKey} {
			if _, err := step(t.Context(), w.red.tenant, sysevent.Operator); err != nil {
				t.Fatal(err)
			}
			w.append(&w.red, id.DiscloseRecord, fmt.Sprint("after-", w.state(&w.red).Size()))
		}
		before = append(before, w.state(&w.red).VerifierKey())
	}
	for i, key := range before[1:] {
		b := read[verify.Bundle](w, keys+key.Hash().String())
		byID := read[verify.Bundle](w, "/o/"+w.red.id.String()+"/keys/"+key.Hash().String())
		if !reflect.DeepEqual(byID, b) {
			t.Errorf("key %d: below the log's prefix is another bundle: %+v", i+1, byID)
		}
		s, err := verify.CheckKeyStatement(&b, []verify.LogKey{verify.Always(before[i])})
		if err != nil || s.Key != key.String() || s.By != before[i].String() || s.From != b.LogIndex+1 {
			t.Errorf("key %d: got %+v, %v", i+1, s, err)
		}
		report := verify.Check(&b, verify.Options{Key: &before[i]})
		if !report.OK || report.EnvelopeOK == nil || !*report.EnvelopeOK || *report.SignatureOK != true {
			t.Fatalf("key %d: got %+v", i+1, report)
		}
		c, err := tlog.OpenCheckpoint([]byte(b.Checkpoint), before[i])
		if err != nil || c.Size != b.LogIndex+1 {
			t.Errorf("key %d: got a checkpoint of size %d for index %d, %v", i+1, c.Size, b.LogIndex, err)
		}
		e, err := event.Parse([]byte(*b.Envelope), event.Options{MaxBytes: len(*b.Envelope), Server: true})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"transition":"log_key_created","vkey":"` + key.String() + `"}`
		if e.ActionKind != verify.LogKeyKind || string(e.Payload) != want {
			t.Errorf("key %d: got %s %s, want %s", i+1, e.ActionKind, e.Payload, want)
		}
	}
	for _, unstated := range []string{first.Hash().String(), "00000000", w.state(&w.blue).VerifierKey().Hash().String()} {
		if got := w.do(http.MethodGet, keys+unstated); got.Code != http.StatusNotFound {
			t.Errorf("%s: got %d", unstated, got.Code)
		}
	}
	for _, other := range []string{"/v1/public/orgs/blue/transparency/keys/", "/o/" + w.blue.id.String() + "/keys/", "/o/" + w.red.id.String() + "/2/keys/"} {
		if got := w.do(http.MethodGet, other+before[1].Hash().String()); got.Code != http.StatusNotFound {
			t.Errorf("%s: got %d", other, got.Code)
		}
	}
}
