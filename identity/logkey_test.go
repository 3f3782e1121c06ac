package identity_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// changedKey is a log key in the answer to a step of a rotation.
type changedKey struct {
	VerifierKey string `json:"vkey"`
	Use         string `json:"use"`
	FromSize    uint64 `json:"from_size"`
	ToSize      *int   `json:"to_size"`
}

// A log's key is rotated while the log is served, by the organization's id or slug.
func TestRotateLogKey(t *testing.T) {
	w := newWorld(t)
	red, blue := w.organization("red"), w.organization("blue")
	keys := organizations + "/red/log-keys"
	answers(t, "nothing to retire", w.platform("POST", keys+"/retire", ""), 409,
		refusal("Only the log key "+red.LogKey+" signs: there is no key to retire"))
	var created, retired changedKey
	w.decode(w.platform("POST", keys, ""), 201, &created)
	if created.Use != "log" || created.FromSize != 1 || created.ToSize != nil || created.VerifierKey == red.LogKey {
		t.Errorf("got %+v", created)
	}
	answers(t, "in the overlap", w.platform("POST", keys, ""), 409,
		refusal("Two log keys already sign, the newer is "+created.VerifierKey+": retire the older one first"))
	w.decode(w.platform("POST", organizations+"/"+red.OrganizationID+"/log-keys/retire", ""), 200, &retired)
	if retired.ToSize == nil || *retired.ToSize != 2 || retired.VerifierKey != red.LogKey || retired.FromSize != 0 {
		t.Errorf("got %+v", retired)
	}
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	statements := w.Audit(t, tenant)
	for i, want := range []string{
		fmt.Sprintf(`{"transition":"log_key_created","vkey":%q}`, created.VerifierKey),
		fmt.Sprintf(`{"transition":"log_key_retired","vkey":%q}`, red.LogKey),
	} {
		if len(statements) != 2 || statements[i].Kind != "ledger_log_key" || statements[i].Principal != "operator" || statements[i].Payload != want {
			t.Fatalf("got %+v", statements)
		}
	}
	other, err := w.orgs.BySlug(t.Context(), "blue")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.State(t, other); s.Size() != 0 || s.VerifierKey().String() != blue.LogKey || len(s.LogKeys()) != 1 {
		t.Errorf("the other organization has %d events and the key %s", s.Size(), s.VerifierKey())
	}
}

func TestRotateLogKeyRefuses(t *testing.T) {
	w := newWorld(t)
	red := w.organization("red")
	for _, step := range []string{"", "/retire"} {
		path := organizations + "/red/log-keys" + step
		answers(t, "no secret", w.call("POST", path, ""), 401, refusal("Invalid platform secret"))
		for _, name := range []string{"green", "RED", "no%20slug", "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"} {
			answers(t, name, w.platform("POST", organizations+"/"+name+"/log-keys"+step, ""), 404, refusal("Not found"))
		}
	}
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	if answer := w.platform("POST", organizations+"/red/log-keys", ""); answer.Code != 503 {
		t.Errorf("a store that takes nothing: got %d %s", answer.Code, answer.Body)
	}
	w.Store.Fail(nil)
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.State(t, tenant); s.Size() != 0 || s.VerifierKey().String() != red.LogKey || len(s.LogKeys()) != 1 {
		t.Errorf("got %d events, key %s", s.Size(), s.VerifierKey())
	}
}
