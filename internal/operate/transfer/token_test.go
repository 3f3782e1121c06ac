package transfer_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
)

func (h *house) tokens() *apitoken.Tokens {
	return apitoken.New(apitoken.Options{
		Records: h.engine, Events: h.systemEvents, Members: h.accounts, Clock: h.clock, Pace: &quota.Quota{Records: h.engine, Clock: h.clock},
	})
}

func (h *house) shares() *share.Links {
	return share.New(share.Options{Records: h.engine, Events: h.systemEvents, Clock: h.clock, Pace: &quota.Quota{Records: h.engine, Clock: h.clock}})
}

// Console tokens and links to views continue to work in another store, for their organization only.
func TestTokensMove(t *testing.T) {
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	blue := here.found("blue", "bob@example.com", 2)
	secrets, links := map[id.Tenant]string{}, map[id.Tenant]string{}
	for tenant, address := range map[id.Tenant]string{red.Tenant: "ann@example.com", blue.Tenant: "bob@example.com"} {
		who, err := here.accounts.Find(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		wanted := apitoken.Wanted{Name: "ci", Role: account.Admin, ExpiresAt: id.InstantOf(here.now.Add(time.Hour))}
		if _, secrets[tenant], err = here.tokens().Create(t.Context(), tenant, who.ID, wanted); err != nil {
			t.Fatal(err)
		}
		link := share.Wanted{Note: "KPMG", ExpiresAt: wanted.ExpiresAt}
		if _, links[tenant], err = here.shares().Create(t.Context(), tenant, who.ID, link); err != nil {
			t.Fatal(err)
		}
	}
	here.stop()
	here.fsck()
	there := newHouse(t, model(t), here.keyring)
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "red")
	there.imports(export, "red")
	there.now = here.now
	there.fsck()
	there.start()
	defer there.stop()
	s, _, err := there.tokens().Authenticate(t.Context(), secrets[red.Tenant])
	if err != nil || s.Role != account.Admin {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, _, err := there.tokens().Authenticate(t.Context(), secrets[blue.Tenant]); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the other organization's: got %v", err)
	}
	if tenant, link, err := there.shares().Find(t.Context(), links[red.Tenant]); err != nil || link.Note != "KPMG" || there.shares().Open(t.Context(), tenant, link) != nil {
		t.Errorf("link: got %+v, %v", link, err)
	}
	if _, _, err := there.shares().Find(t.Context(), links[blue.Tenant]); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other organization's link: got %v", err)
	}
}

// Console tokens and endpoints continue to work with the successor of a frozen log.
func TestTokensSucceed(t *testing.T) {
	h := newHouse(t, pebble(t), newKeyring(t))
	h.start()
	red := h.found("red", "ann@example.com", 1)
	who, err := h.accounts.Find(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	wanted := apitoken.Wanted{Name: "ci", Role: account.Admin, ExpiresAt: id.InstantOf(h.now.Add(time.Hour))}
	_, secret, err := h.tokens().Create(t.Context(), red.Tenant, who.ID, wanted)
	if err != nil {
		t.Fatal(err)
	}
	address, events := "https://hook.example/", []string{"run.*"}
	hooks := webhook.New(webhook.Options{Records: h.engine, Keyring: h.keyring, Caller: make(receiver, 1), Events: h.systemEvents, Clock: h.clock})
	if _, err := hooks.CreateEndpoint(t.Context(), red.Tenant, "acc_ann", webhook.EndpointPatch{URL: &address, Events: &events}); err != nil {
		t.Fatal(err)
	}
	_, link, err := h.shares().Create(t.Context(), red.Tenant, who.ID, share.Wanted{Note: "KPMG", ExpiresAt: wanted.ExpiresAt})
	if err != nil {
		t.Fatal(err)
	}
	h.freeze(red)
	h.stop()
	if _, err := h.succession("red", "a test", nil); err != nil {
		t.Fatal(err)
	}
	h.fsck()
	h.start()
	defer h.stop()
	now := red.succeeded()
	if tenant, _, err := h.shares().Find(t.Context(), link); err != nil || tenant != now.Tenant {
		t.Errorf("link: got tenant %d, %v; want %d", tenant, err, now.Tenant)
	}
	if s, _, err := h.tokens().Authenticate(t.Context(), secret); err != nil || s.Tenant != now.Tenant {
		t.Errorf("got %+v, %v; want tenant %d", s, err, now.Tenant)
	}
	if all, err := hooks.Endpoints(t.Context(), now.Tenant, h.state(now.Tenant).Identity().Organization); err != nil || len(all) != 1 || all[0].URL != address {
		t.Errorf("got %+v, %v", all, err)
	}
}
