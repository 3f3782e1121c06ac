package webhook

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// someGone reports that event 7 and the approval apr_gone of an organization are erased.
type someGone struct{ of id.Tenant }

func (g someGone) EventErased(_ context.Context, t id.Tenant, at id.Index) (bool, error) {
	return t == g.of && at == 7, nil
}

func (g someGone) ApprovalErased(_ context.Context, t id.Tenant, name string) (bool, error) {
	return t == g.of && name == "apr_gone", nil
}

func oldSlackText(t testing.TB, detail, approval string) []byte {
	t.Helper()
	o := &Sender{publicURL: "https://ledger.example/"}
	body, err := o.slackBody(&Message{Title: "agt asks for approval of acme.pay.", Detail: detail, Path: "/console/approvals/" + approval}, false)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// approvalOf returns the approval of a card, which the tests name in place of the type.
func approvalOf(kind string) string {
	if strings.HasPrefix(kind, "apr_") {
		return kind
	}
	return ""
}

// Texts are removed only from deliveries and dead letters about erased events and payloads. Everything else in them
// stays.
func TestEraseTexts(t *testing.T) {
	const notice = `{"type":"event.stored","timestamp":"2026-11-21T12:00:00.000Z","data":{"event_id":"e","log_index":7,"actor_principal":"mia"}}`
	for name, tt := range map[string]struct {
		key, kind, body string
		changes         bool
	}{
		"payload":                {"msg_1", "approval.pending", string(oldSlackText(t, "```{\"card\":\"canary\"}", "apr_gone")), true},
		"payload that is there":  {"msg_1", "approval.pending", string(oldSlackText(t, `{"card":"canary"}`, "apr_there")), false},
		"no detail":              {"msg_1", "approval.approved", string(oldSlackText(t, "", "apr_gone")), false},
		"principal":              {"whk_1_0a0b0c0d_0000000000000007_event_stored", "event.stored", strings.Replace(notice, "mia", "canary", 1), true},
		"denial":                 {"whk_1_0a0b0c0d_0000000000000007_decision_denied", "decision.denied", strings.Replace(notice, "mia", "canary", 1), true},
		"another event":          {"whk_1_0a0b0c0d_0000000000000008_event_stored", "event.stored", strings.Replace(notice, "mia", "canary", 1), false},
		"no principal":           {"whk_1_0a0b0c0d_0000000000000007_event_stored", "event.stored", `{"type":"event.stored","data":{"actor_principal":null}}`, false},
		"a notice of the ledger": {"whk_1_0a0b0c0d_ledger_fault", "ledger.fault", `{"type":"ledger.fault","data":{"level":"canary"}}`, false},
		"a test":                 {"msg_2", "endpoint.test", `{"type":"endpoint.test","data":{}}`, false},
		"card":                   {"msg_3", "apr_gone", `{"text":"Approve canary?","blocks":[]}`, true},
		"card that is there":     {"msg_3", "apr_there", `{"text":"Approve canary?","blocks":[]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := storagetest.NewModel()
			o := New(Options{Records: store})
			for _, tenant := range []id.Tenant{11, 12} {
				for _, kept := range []records.Store[delivery]{o.deliveries, o.dead} {
					change, err := kept.Put(records.Versioned[delivery]{Key: tt.key, Value: delivery{Type: tt.kind, Body: []byte(tt.body), Endpoint: "whk_1", Tries: 3, Approval: approvalOf(tt.kind)}})
					if err == nil {
						err = store.Write(t.Context(), tenant, []storage.Change{change})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			changed, err := o.EraseTexts(t.Context(), 11, someGone{11})
			if want := map[bool]int{true: 2}[tt.changes]; err != nil || changed != want {
				t.Errorf("changed %d, %v, want %d", changed, err, want)
			}
			for _, kept := range []records.Store[delivery]{o.deliveries, o.dead} {
				d, err := kept.Get(t.Context(), 11, tt.key)
				if err != nil || d.Value.Tries != 3 || strings.Contains(string(d.Value.Body), "canary") == tt.changes && strings.Contains(tt.body, "canary") {
					t.Errorf("%s: got %+v, %v", kept.Kind, d.Value, err)
				}
				if !d.Value.Body.IsValid() || (string(d.Value.Body) == tt.body) == tt.changes {
					t.Errorf("%s: body %s", kept.Kind, d.Value.Body)
				}
				other, err := kept.Get(t.Context(), 12, tt.key)
				if err != nil || string(other.Value.Body) != tt.body || other.Version != 1 {
					t.Errorf("the other organization's: got %+v, %v", other, err)
				}
			}
		})
	}
}

// moving is a store in which a delivery becomes a dead letter before its version without the text is written.
type moving struct {
	storage.RecordStore
	once func()
}

func (m *moving) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if once := m.once; once != nil {
		m.once = nil
		once()
	}
	return m.RecordStore.Write(ctx, t, changes)
}

// A delivery that is given up or resent while its text is erased still loses the text.
func TestEraseTextsOfMovingDeliveries(t *testing.T) {
	for name, kinds := range map[string][2]storage.Kind{"given up": {kindDelivery, kindDead}, "replayed": {kindDead, kindDelivery}} {
		t.Run(name, func(t *testing.T) {
			store := &moving{RecordStore: storagetest.NewModel()}
			o := New(Options{Records: store})
			value, err := json.Marshal(delivery{Type: "approval.pending", Body: oldSlackText(t, "canary", "apr_gone"), Endpoint: "whk_1"})
			if err != nil {
				t.Fatal(err)
			}
			put := storage.Change{Kind: kinds[0], Key: "msg_1", Value: value}
			if err := store.Write(t.Context(), 11, []storage.Change{put}); err != nil {
				t.Fatal(err)
			}
			store.once = func() {
				removed := storage.Change{Kind: kinds[0], Key: "msg_1", If: storage.AnyVersion}
				put.Kind = kinds[1]
				if err := store.RecordStore.Write(t.Context(), 11, []storage.Change{removed, put}); err != nil {
					t.Error(err)
				}
			}
			if changed, err := o.EraseTexts(t.Context(), 11, someGone{11}); err != nil || changed != 1 {
				t.Errorf("changed %d, %v", changed, err)
			}
			moved, err := store.Get(t.Context(), 11, kinds[1], "msg_1")
			if err != nil || strings.Contains(string(moved.Value), "canary") {
				t.Errorf("got %s, %v", moved.Value, err)
			}
		})
	}
}

// Whatever the detail contains, it is removed completely, and the link stays. Other bodies are not changed.
func FuzzCutDetail(f *testing.F) {
	for _, seed := range []string{"", "{}", "```", "\n```x```\n<", `{"a":"/v1/console/approvals/apr_other|Open"}`, "\u202e<&>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, detail string) {
		detail = strings.ToValidUTF8(detail, "?")
		before, approval, after, shows := cutDetail(oldSlackText(t, detail, "apr_gone"))
		if shows != (detail != "") || shows && approval != "apr_gone" {
			t.Fatalf("got %v, %q", shows, approval)
		}
		want := "agt asks for approval of acme.pay.\n<https://ledger.example/console/approvals/apr_gone|Open>"
		if shows && before+after != want {
			t.Errorf("left: %q", before+after)
		}
		cutDetail([]byte(detail))
	})
}
