package publicapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/log"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// listed returns a world with a third organization that is the directory.
func listed(t *testing.T) (w *world, d *directory.Directory, own *owner) {
	w = newWorld(t)
	own = &owner{tenant: 13, id: id.Organization{15: 3}, slug: "directory"}
	w.found(own)
	d = directory.New(directory.Options{Ledgers: w.ledgers, Store: w.store, Events: w.events, Tenant: own.tenant})
	w.directory = &publicapi.Directory{Slug: own.slug, Tenant: own.tenant, Listings: d}
	w.serve(w.agents)
	return w, d, own
}

func (w *world) publish(d *directory.Directory, want int) {
	w.Helper()
	if got, err := d.Publish(w.Context()); err != nil || got != want {
		w.Fatalf("got %d, %v, want %d", got, err, want)
	}
}

// Without a directory, its routes return 404.
func TestNoDirectory(t *testing.T) {
	w := newWorld(t)
	w.directory = nil
	w.serve(w.agents)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.missing("/v1/public/directory")
	w.missing("/v1/public/directory/events")
	if b := read[map[string]any](w, "/v1/public/orgs/red/verify/one?directory=1"); b["directory"] != nil {
		t.Errorf("got %v", b["directory"])
	}
}

func TestDirectoryNamesItself(t *testing.T) {
	w, _, own := listed(t)
	got := read[map[string]any](w, "/v1/public/directory")
	want := map[string]any{"organization_id": own.id.String(), "organization_slug": "directory", "origin": string(own.origin()), "log_key": w.state(own).VerifierKey().String()}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The proof of the directory, for readers who trust the directory's key: inclusion in the organization's tree at the
// listed size, and the listing under the directory's checkpoint.
func TestSecondProof(t *testing.T) {
	w, d, own := listed(t)
	w.append(&w.red, id.DiscloseCommitment, names("e", 300)...)
	w.append(&w.blue, id.DiscloseFull, names("e", 3)...)
	if b := read[map[string]any](w, "/v1/public/orgs/red/verify/e-0?directory=1"); b["directory"] != nil {
		t.Error("there is a second proof before anything is listed")
	}
	w.publish(d, 2)
	w.append(&w.red, id.DiscloseCommitment, names("later", 10)...)

	key, other := w.state(own).VerifierKey(), w.state(&w.blue).VerifierKey()
	for _, path := range []string{"red/verify/e-0", "red/verify/e-299", "blue/verify/e-1"} {
		b, err := verify.ParseBundle(w.get("/v1/public/orgs/" + path + "?directory=1&verify=1").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if b.Directory == nil || b.Verification.DirectoryOK == nil || !*b.Verification.DirectoryOK || !b.Verification.OK {
			t.Fatalf("%s: got %+v", path, b.Verification)
		}
		if r := verify.Check(b, verify.Options{Directory: &verify.Options{Key: &key}}); !r.OK || !*r.DirectoryOK {
			t.Errorf("%s: %v", path, r.Errors)
		}
		if r := verify.Check(b, verify.Options{Directory: &verify.Options{Key: &other}}); r.OK || *r.DirectoryOK || !strings.HasPrefix(r.Errors[0], "directory: bundle: checkpoint: ") {
			t.Errorf("%s: another key for the directory: %v", path, r.Errors)
		}
	}
	for _, path := range []string{"red/verify/later-0", "directory/verify/" + string(w.listing(own, 0).EventID)} {
		if b := read[map[string]any](w, "/v1/public/orgs/"+path+"?directory=1"); b["directory"] != nil {
			t.Errorf("%s: has a second proof", path)
		}
	}
	if b := read[map[string]any](w, "/v1/public/orgs/red/verify/e-0"); b["directory"] != nil {
		t.Error("a second proof that nobody asked for")
	}
}

// listing returns the record of an event in the directory's log.
func (w *world) listing(own *owner, at int) event.Record {
	w.Helper()
	page := w.page(0)
	r, err := event.ParseRecord([]byte(page.Events[at].Record))
	if err != nil {
		w.Fatal(err)
	}
	return r
}

type page struct {
	From, Next id.Index
	TreeSize   id.Index `json:"tree_size"`
	Events     []struct {
		LogIndex         id.Index `json:"log_index"`
		Record, Envelope string
	}
}

func (w *world) page(from id.Index) page {
	w.Helper()
	return read[page](w, fmt.Sprintf("/v1/public/directory/events?from=%d", from))
}

// Everyone can read what the directory lists, and compare it with the directory's entries.
func TestDirectoryEvents(t *testing.T) {
	w, d, own := listed(t)
	if p := w.page(0); p.Next != 0 || len(p.Events) != 0 {
		t.Errorf("an empty directory: got %+v", p)
	}
	w.append(&w.red, id.DiscloseRecord, names("e", 2)...)
	w.publish(d, 1)
	w.append(own, id.DiscloseFull, "its-own") // an ordinary event of the organization
	w.append(&w.blue, id.DiscloseRecord, names("e", 3)...)
	w.publish(d, 1)

	p := w.page(0)
	if p.Next != 3 || p.TreeSize != 3 || len(p.Events) != 2 || p.Events[0].LogIndex != 0 || p.Events[1].LogIndex != 2 {
		t.Fatalf("got %+v", p)
	}
	for i, want := range []*owner{&w.red, &w.blue} {
		e, err := w.ledgers.Event(t.Context(), w.state(own), p.Events[i].LogIndex, 0)
		if err != nil || e.Entry.Record != event.RecordHash([]byte(p.Events[i].Record)) {
			t.Errorf("event %d is not what its entry commits to: %v", i, err)
		}
		envelope, err := event.Parse([]byte(p.Events[i].Envelope), event.Options{Server: true})
		if err != nil {
			t.Fatal(err)
		}
		l, err := verify.ParseListing(envelope)
		s := w.state(want)
		if err != nil || len(l.Checkpoints) != 1 || l.Checkpoints[0] != (verify.Listed{Origin: want.origin(), Size: s.Size(), Root: s.Root(), LogKey: s.VerifierKey().String()}) {
			t.Errorf("got %+v, %v", l, err)
		}
	}
	if p := w.page(1); len(p.Events) != 1 || p.Next != 3 {
		t.Errorf("from 1: got %+v", p)
	}
	if p := w.page(3); len(p.Events) != 0 || p.Next != 3 {
		t.Errorf("from the end: got %+v", p)
	}
	w.missing("/v1/public/directory/events?from=4")
	w.invalid("/v1/public/directory/events?from=-1", "from must be a whole number in decimal digits")
	w.invalid("/v1/public/directory/events?from=1&from=2", `Query parameter \"from\" is given more than once`)
}

// Pages are bounded and cover the whole log.
func TestDirectoryPages(t *testing.T) {
	w, d, own := listed(t)
	w.append(own, id.DiscloseFull, names("own", 1500)...)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.publish(d, 1)
	first := w.page(0)
	if first.Next != 1024 || len(first.Events) != 0 {
		t.Errorf("got %d events up to %d", len(first.Events), first.Next)
	}
	if second := w.page(first.Next); second.Next != 1501 || len(second.Events) != 1 {
		t.Errorf("got %d events up to %d", len(second.Events), second.Next)
	}
}

// othersDirectory contains the ledgers of a node that does not own the directory.
type othersDirectory struct {
	publicapi.Ledgers
	shown map[id.Tenant]*log.State
}

func (o othersDirectory) State(ctx context.Context, t id.Tenant) (*log.State, error) {
	if o.shown[t] != nil {
		return nil, fmt.Errorf("read: %w", log.ErrNotOwner)
	}
	return o.Ledgers.State(ctx, t)
}

func (o othersDirectory) LastShown(_ context.Context, t id.Tenant) (*log.State, error) {
	return o.shown[t], nil
}

// A node that does not own the directory also adds the proof of the directory, from the published state.
func TestSecondProofOfAnotherNode(t *testing.T) {
	w, d, own := listed(t)
	w.append(&w.red, id.DiscloseCommitment, "one")
	before := w.state(own)
	w.publish(d, 1)
	for name, c := range map[string]struct {
		shown *log.State
		want  bool
	}{"before the listing": {before, false}, "with the listing": {w.state(own), true}} {
		w.read = othersDirectory{w.ledgers, map[id.Tenant]*log.State{own.tenant: c.shown}}
		w.serve(w.agents)
		b, err := verify.ParseBundle(w.get("/v1/public/orgs/red/verify/one?directory=1&verify=1").Body.Bytes())
		if err != nil || (b.Directory != nil) != c.want || !b.Verification.OK {
			t.Errorf("%s: got %+v, %v", name, b, err)
		}
	}
}

// Each part of the directory's proof is modified or replaced by the part of another proof.
func TestSecondProofBent(t *testing.T) {
	w, d, _ := listed(t)
	w.append(&w.red, id.DiscloseFull, names("e", 5)...)
	w.append(&w.blue, id.DiscloseFull, names("e", 5)...)
	w.publish(d, 2)
	w.append(&w.red, id.DiscloseFull, names("later", 5)...)
	w.publish(d, 1)
	text := w.get("/v1/public/orgs/red/verify/e-2?directory=1").Body.Bytes()
	blue := w.get("/v1/public/orgs/blue/verify/e-2?directory=1").Body.Bytes()
	good, other := mustParse(t, text), mustParse(t, blue)
	if r := verify.Check(good, verify.Options{}); !r.OK {
		t.Fatal(r.Errors)
	}
	for name, bend := range map[string]func(b *verify.Bundle){
		"log index": func(b *verify.Bundle) { b.Directory.Inclusion.LogIndex++ },
		"tree size": func(b *verify.Bundle) { b.Directory.Inclusion.TreeSize-- },
		"root":      func(b *verify.Bundle) { b.Directory.Inclusion.RootHash[0] ^= 1 },
		"hash":      func(b *verify.Bundle) { b.Directory.Inclusion.Hashes[0][0] ^= 1 },
		"no hashes": func(b *verify.Bundle) { b.Directory.Inclusion.Hashes = nil },
		"under its own head": func(b *verify.Bundle) {
			b.Directory.Inclusion = b.Inclusion
			b.Directory.Bundle = other.Directory.Bundle
		},
		"of another log":     func(b *verify.Bundle) { b.Directory.Inclusion = other.Directory.Inclusion },
		"an ordinary event":  func(b *verify.Bundle) { b.Directory.Bundle = withoutSecond(other) },
		"no bundle":          func(b *verify.Bundle) { b.Directory.Bundle = nil },
		"a directory inside": func(b *verify.Bundle) { b.Directory.Bundle.Directory = b.Directory },
		"listing not disclosed": func(b *verify.Bundle) {
			b.Directory.Bundle.Envelope = nil
			b.Directory.Bundle.Disclosure = id.DiscloseRecord
		},
		"envelope": func(b *verify.Bundle) {
			bent := strings.Replace(*b.Directory.Bundle.Envelope, `"tree_size":10`, `"tree_size":11`, 1)
			b.Directory.Bundle.Envelope = &bent
		},
		"directory's checkpoint": func(b *verify.Bundle) { b.Directory.Bundle.Checkpoint = b.Checkpoint },
		"directory's entry":      func(b *verify.Bundle) { b.Directory.Bundle.Entry = b.Entry },
	} {
		b := mustParse(t, text)
		bend(b)
		r := verify.Check(b, verify.Options{})
		if r.OK || r.DirectoryOK == nil || *r.DirectoryOK || !r.InclusionOK || !r.CheckpointOK {
			t.Errorf("%s: got %v, directory_ok %v", name, r.Errors, r.DirectoryOK)
		}
	}
	for name, bad := range map[string]string{
		"member of directory": `"directory":{"bundle":null,"inclusion":null,"more":1}`,
		"no bundle":           `"directory":{"inclusion":{}}`,
		"not an object":       `"directory":[]`,
	} {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		delete(members, "directory")
		rest, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verify.ParseBundle([]byte("{" + bad + "," + string(rest[1:]))); err == nil {
			t.Errorf("%s: is read", name)
		}
	}
}

func mustParse(t *testing.T, text []byte) *verify.Bundle {
	t.Helper()
	b, err := verify.ParseBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func withoutSecond(b *verify.Bundle) *verify.Bundle {
	c := *b
	c.Directory = nil
	return &c
}

// The payload of a listing is parsed strictly.
func TestParseListing(t *testing.T) {
	w := newWorld(t)
	red, blue := w.state(&w.red).VerifierKey(), w.state(&w.blue).VerifierKey()
	line := func(key tlog.VerifierKey, size string) string {
		return fmt.Sprintf(`{"origin":%q,"tree_size":%s,"root_hash":"%064d","log_key":%q}`, key.Name(), size, 7, key)
	}
	low, high := blue, red
	if low.Name() > high.Name() {
		low, high = high, low
	}
	for payload, ok := range map[string]bool{
		`{"checkpoints":[` + line(low, "1") + `]}`:                         true,
		`{"checkpoints":[` + line(low, "1") + `,` + line(high, "2") + `]}`: true,
		`{"checkpoints":[` + line(high, "1") + `,` + line(low, "2") + `]}`: false,
		`{"checkpoints":[` + line(low, "1") + `,` + line(low, "2") + `]}`:  false,
		`{"checkpoints":[` + line(low, "0") + `]}`:                         false,
		`{"checkpoints":[` + line(low, "-1") + `]}`:                        false,
		`{"checkpoints":[` + line(low, "9007199254740992") + `]}`:          false,
		`{"checkpoints":[]}`: false,
		`{}`:                 false,
		`{"checkpoints":[` + line(low, "1") + `],"more":1}`:                      false,
		`{"checkpoints":[` + strings.Replace(line(low, "1"), "+", "-", 1) + `]}`: false,
	} {
		e := &event.Envelope{ActionKind: verify.DirectoryKind, Payload: []byte(payload)}
		if _, err := verify.ParseListing(e); ok != (err == nil) {
			t.Errorf("%s: got %v", payload, err)
		}
		e.ActionKind = "ledger_run"
		if _, err := verify.ParseListing(e); err == nil {
			t.Error("an event of another kind is a listing")
		}
	}
}
