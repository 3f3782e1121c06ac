package publicapi_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// Each event of each organization has a receipt that holds under the key of its own log alone.
func TestReceipts(t *testing.T) {
	w := newWorld(t)
	key := map[string]tlog.VerifierKey{"red": w.state(&w.red).VerifierKey(), "blue": w.state(&w.blue).VerifierKey()}
	for slug, o := range map[string]*owner{"red": &w.red, "blue": &w.blue} {
		other := map[string]string{"red": "blue", "blue": "red"}[slug]
		for i, stored := range w.append(o, id.DiscloseCommitment, names(slug, 5)...) {
			target := "/v1/public/orgs/" + slug + "/verify/" + slug + "-" + strconv.Itoa(i)
			r, err := tlog.ParseReceipt(w.get(target + "?format=cose").Body.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if c, err := r.Check(stored.EventHash, key[slug]); err != nil || c != w.state(o).Shown() || r.Index != id.Index(i) {
				t.Errorf("%s: got %+v, index %d, %v", target, c, r.Index, err)
			}
			if _, err := r.Check(stored.EventHash, key[other]); !errors.Is(err, tlog.ErrSignature) {
				t.Errorf("%s under the key of %s: got %v", target, other, err)
			}
			w.missing(strings.Replace(target, "/"+slug+"/", "/"+other+"/", 1) + "?format=cose")
		}
	}
}

func TestReceiptForms(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one", "two", "three")
	const target = "/v1/public/orgs/red/verify/two"
	for _, c := range []struct{ query, accept string }{
		{"?format=cose", ""},
		{"?format=cose", "application/json, text/html"},
		{"?format=cose&verify=1&directory=1", "*/*"},
		{"", "application/cose"},
		{"", `application/cose; cose-type="cose-sign1"`},
		{"", "application/json;q=0.3, application/cose;q=0.4, text/plain;q=0.2"},
		{"", "application/json;q=0, application/*"},
	} {
		answer := w.get(target+c.query, "Accept: "+c.accept)
		h := answer.Header()
		if h.Get("Content-Type") != "application/cose" || h.Get("Cache-Control") != "no-cache" || h.Get("Vary") != "Accept" || h.Get("ETag") == "" {
			t.Errorf("%q with Accept %q: got %v", c.query, c.accept, h)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			again := w.ask(method, target+c.query, "Accept: "+c.accept, "If-None-Match: "+h.Get("ETag"))
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Vary") != "Accept" {
				t.Errorf("%s %q with Accept %q: got %d %v", method, c.query, c.accept, again.Code, again.Header())
			}
		}
		head := w.ask(http.MethodHead, target+c.query, "Accept: "+c.accept)
		if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("Content-Length") != strconv.Itoa(answer.Body.Len()) {
			t.Errorf("HEAD %q: got %d %v", c.query, head.Code, head.Header())
		}
	}
	tag := w.get(target + "?format=cose").Header().Get("ETag")
	for _, query := range []string{"?format=json", "?format=tlog-proof"} {
		if got := w.ask(http.MethodGet, target+query, "If-None-Match: "+tag).Code; got != http.StatusOK {
			t.Errorf("%s with the ETag of the receipt: got %d", query, got)
		}
	}
	w.append(&w.red, id.DiscloseRecord, "four")
	if got := w.ask(http.MethodGet, target+"?format=cose", "If-None-Match: "+tag); got.Code != http.StatusOK {
		t.Errorf("after the tree has grown: got %d", got.Code)
	}
	w.invalid(target+"?format=COSE", "format must be json, tlog-proof or cose")
}

// RFC 9942 has no form for the empty path of a log's only entry.
func TestReceiptOfTheOnlyEntry(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	const target = "/v1/public/orgs/red/verify/one?format=cose"
	w.failed(target, http.StatusServiceUnavailable, `{"error":"The only entry of a log has no COSE receipt; try again when the log has a second entry","code":"unavailable"`)
	w.append(&w.red, id.DiscloseRecord, "two")
	if r, err := tlog.ParseReceipt(w.get(target).Body.Bytes()); err != nil || r.Size != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	first, note, err := w.ledgers.CheckpointAt(t.Context(), w.state(&w.red), 1)
	if err != nil {
		t.Fatal(err)
	}
	w.witnesses = lagging{first, note}
	w.serve(w.agents)
	if r, err := tlog.ParseReceipt(w.get(target).Body.Bytes()); err != nil || r.Size != 2 {
		t.Errorf("while the cosigned tree has one entry: got %+v, %v", r, err)
	}
}

// lagging has cosigned an early checkpoint only.
type lagging struct {
	at   tlog.Checkpoint
	note []byte
}

func (lagging) Policy(context.Context, *log.State) (*trust.Policy, error) {
	return &trust.Policy{Quorum: trust.None}, nil
}
func (l lagging) Checkpoint(context.Context, *log.State) ([]byte, error) { return l.note, nil }
func (l lagging) Cosigned(context.Context, *log.State) ([]byte, error)   { return l.note, nil }
func (l lagging) Covering(context.Context, *log.State, id.Index) (tlog.Checkpoint, []byte, error) {
	return l.at, l.note, nil
}

var _ publicapi.Witnesses = lagging{}

// While two keys sign, a receipt has the signature of the one that auditors have pinned, as the bundle's log_key.
func TestReceiptsWhileTheKeyIsRotated(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one", "two")
	w.rekey(&w.red, "rotated", w.ledgers.RotateLogKey)
	keys := w.state(&w.red).LogKeys()
	before, now := keys[0].Verifier, keys[1].Verifier
	receipt := func(name string) tlog.Receipt {
		t.Helper()
		r, err := tlog.ParseReceipt(w.get("/v1/public/orgs/red/verify/" + name + "?format=cose").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := receipt("one"); r.KeyHash != before.Hash() {
		t.Errorf("during the rotation: got key %s, want %s", r.KeyHash, before.Hash())
	}
	w.rekey(&w.red, "retired", w.ledgers.RetireLogKey)
	if r := receipt("one"); r.KeyHash != now.Hash() {
		t.Errorf("after the rotation: got key %s, want %s", r.KeyHash, now.Hash())
	}
}
