package transfer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const kindVoterKey storage.Kind = "voter_key"

func (h *house) voterKeys() *voterkey.Keys {
	h.t.Helper()
	factors, err := factor.New(factor.Options{Records: h.engine, Accounts: h.accounts, Sealer: h.keyring,
		PublicURL: "https://log.example", Clock: h.clock})
	if err != nil {
		h.t.Fatal(err)
	}
	h.factors = factors
	return voterkey.New(voterkey.Options{Records: h.engine, Events: h.systemEvents, Ledgers: h.ledgers, Accounts: h.accounts,
		Factors: factors, Clock: h.clock})
}

// registerVoter gives an account a passkey and registers it as a voter key. Unless by is nil, that key consents.
func (h *house) registerVoter(t id.Tenant, who account.ID, by *passkeytest.Authenticator) *passkeytest.Authenticator {
	h.t.Helper()
	keys := h.voterKeys()
	person, err := h.accounts.ByID(h.t.Context(), who)
	if err != nil {
		h.t.Fatal(err)
	}
	key := passkeytest.New(h.t, "https://log.example")
	key.AddTo(keys.Factors, person)
	begun, err := keys.Begin(h.t.Context(), t, who, key.Credential)
	if err != nil {
		h.t.Fatal(err)
	}
	possession := key.SignText(begun.Text, begun.RPID, begun.Time)
	if by == nil {
		_, err = keys.Register(h.t.Context(), t, person, key.Credential, possession, nil, account.Visit{})
	} else {
		consent := by.SignText(begun.Text, begun.RPID, begun.Time)
		_, err = keys.Register(h.t.Context(), t, person, key.Credential, possession, &consent, account.Visit{})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return key
}

// voterRecord returns the record of a voter key.
func (h *house) voterRecord(t id.Tenant, who account.ID, key *passkeytest.Authenticator) storage.Record {
	h.t.Helper()
	name := strings.TrimPrefix(voterkey.FactName(who, key.Credential), "voter_key/")
	r, err := h.engine.Get(h.t.Context(), t, kindVoterKey, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// put writes a record as somebody with access to the store would. A nil value removes it.
func (h *house) put(t id.Tenant, r storage.Record) {
	h.t.Helper()
	err := h.engine.Write(h.t.Context(), t, []storage.Change{{Kind: r.Kind, Key: r.Key, Value: r.Value, If: storage.AnyVersion}})
	if err != nil {
		h.t.Fatal(err)
	}
}

// forgedFor returns a record of a voter key of another account that no event registered.
func forgedFor(t testing.TB, r storage.Record, who account.ID) storage.Record {
	t.Helper()
	var k voterkey.Key
	if err := json.Unmarshal(r.Value, &k); err != nil {
		t.Fatal(err)
	}
	k.Account = who
	_, credential, _ := strings.Cut(r.Key, "/")
	return storage.Record{Kind: kindVoterKey, Key: string(who) + "/" + credential, Value: mustJSON(k)}
}

// A voter key that no event registered, a retired one that is back, a missing one and a changed one hold the
// organization, on both engines. Accepting the records releases it.
func TestVoterKeyContradictionHolds(t *testing.T) {
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"embedded": pebble, "database": postgres} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, engine(t), newKeyring(t))
			h.start()
			red, blue := h.found("red", "ann@example.com", 1), h.found("blue", "bob@example.com", 2)
			ann := red.Membership.Account
			first := h.registerVoter(red.Tenant, ann, nil)
			second := h.registerVoter(red.Tenant, ann, first)
			h.registerVoter(blue.Tenant, blue.Membership.Account, nil)
			retired := h.voterRecord(red.Tenant, ann, second)
			if err := h.voterKeys().Retire(t.Context(), red.Tenant, ann, ann, second.Credential); err != nil {
				t.Fatal(err)
			}
			right := h.voterRecord(red.Tenant, ann, first)
			look := func(what string, ofRed log.Level) {
				t.Helper()
				w := &recordcheck.Watcher{Ledgers: h.ledgers, Store: h.engine, Keyring: h.keyring, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
				if err := w.RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := h.state(red.Tenant).Fault(); got.Level != ofRed {
					t.Errorf("%s: red is %q, want %q: %s", what, got.Level, ofRed, got.Reason)
				}
				if got := h.state(blue.Tenant).Fault().Level; got != log.Healthy {
					t.Errorf("%s: blue is %q", what, got)
				}
			}
			look("as it is", log.Healthy)
			// Statements stored by a program that did not know voter keys are read again.
			old := fmt.Appendf(nil, `{"size":%d,"facts":{}}`, h.state(red.Tenant).Size())
			h.put(red.Tenant, storage.Record{Kind: "derived/stated", Value: mustJSON(map[string]any{"stated": json.RawMessage(old),
				"authenticator": id.Hash(h.keyring.Authenticate("agentledger/stated/v1", fmt.Appendf(nil, "%d\n%s", red.Tenant, old)))})})
			look("after an update of the program", log.Healthy)

			forged := forgedFor(t, right, "acc_eve")
			changed := right
			changed.Value = []byte(strings.Replace(string(right.Value), `"consent_by"`, `"was"`, 1))
			changed.Value = []byte(strings.Replace(string(changed.Value), `"rp_id":"log.example"`, `"rp_id":"example"`, 1))
			gone := storage.Record{Kind: kindVoterKey, Key: right.Key}
			for _, tamper := range []struct {
				what   string
				record storage.Record
				undo   storage.Record
			}{
				{"never registered", forged, storage.Record{Kind: kindVoterKey, Key: forged.Key}},
				{"retired", retired, storage.Record{Kind: kindVoterKey, Key: retired.Key}},
				{"gone", gone, right},
				{"changed", changed, right},
			} {
				h.put(red.Tenant, tamper.record)
				look(tamper.what, log.Held)
				h.stop()
				h.put(red.Tenant, tamper.undo)
				if err := log.Release(t.Context(), h.engine, red.Tenant); err != nil {
					t.Fatal(err)
				}
				h.start()
				look(tamper.what+", undone", log.Healthy)
			}

			h.put(red.Tenant, forged)
			_, err := h.systemEvents.Append(t.Context(), red.Tenant, sysevent.Operator, func(context.Context, *log.State) (sysevent.Change, error) {
				return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.RecordsAccepted, Payload: map[string]any{
					"subjects": []string{"voter_key/" + forged.Key}, "reason": "a test"}}}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			look("accepted", log.Healthy)
			h.put(red.Tenant, storage.Record{Kind: kindVoterKey, Key: forged.Key})
			look("accepted and removed", log.Healthy)
			h.stop()
		})
	}
}

// changing is a store that runs a function between the reading of the events and the reading of a kind of records.
type changing struct {
	recordcheck.Store
	kind storage.Kind
	do   func()
}

func (c *changing) Scan(ctx context.Context, t id.Tenant, k storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if do := c.do; k == c.kind && do != nil {
		c.do = nil
		do()
	}
	return c.Store.Scan(ctx, t, k, begin, end, limit)
}

// A key that is registered or retired while the records are compared is no contradiction, even though it does not
// change the config version.
func TestVoterKeyChangesDuringComparison(t *testing.T) {
	h := newHouse(t, model(t), newKeyring(t))
	h.start()
	defer h.stop()
	red := h.found("red", "ann@example.com", 1)
	ann := red.Membership.Account
	var key *passkeytest.Authenticator
	for what, do := range map[string]func(){
		"registered": func() { key = h.registerVoter(red.Tenant, ann, key) },
		"retired": func() {
			if err := h.voterKeys().Retire(t.Context(), red.Tenant, ann, ann, key.Credential); err != nil {
				t.Fatal(err)
			}
			key = nil
		},
	} {
		if what == "retired" && key == nil {
			key = h.registerVoter(red.Tenant, ann, nil)
		}
		var stated recordcheck.Statements
		found, err := stated.CompareStore(t.Context(), &changing{h.engine, kindVoterKey, do}, red.State.Identity())
		if err != nil || len(found) > 0 {
			t.Errorf("%s: got %v, %v", what, found, err)
		}
	}
}

// An import refuses an organization with a voter key that no event registered, even if the export is authentic.
func TestForgedVoterKeyIsNotImported(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	key := here.registerVoter(red.Tenant, red.Membership.Account, nil)
	here.put(red.Tenant, forgedFor(t, here.voterRecord(red.Tenant, red.Membership.Account, key), "acc_eve"))
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	there := newHouse(t, model(t), here.keyring)
	_, err := there.tryImport(dir, "")
	if err == nil || !strings.Contains(err.Error(), "voter_key/acc_eve/") || !strings.Contains(err.Error(), "no event states this record") {
		t.Errorf("got %v", err)
	}
	if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 {
		t.Errorf("something was written: %v", tenants)
	}
}
