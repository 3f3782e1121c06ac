package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// newMovingWorld returns a world whose organization red moves to another node.
func newMovingWorld(t *testing.T) (*world, *ledgertest.Move) {
	t.Helper()
	m := &ledgertest.Move{Tenant: red}
	var options console.Options
	shared := func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.NewShared(t, m.Owned, d) }
	w := newWorldOf(t, shared, func(o *console.Options) {
		o.Edge.Passer = m
		options = *o
	})
	surface, err := console.New(options)
	if err != nil {
		t.Fatal(err)
	}
	router := options.Edge.Router()
	surface.Routes(router)
	w.handler = router
	return w, m
}

// deputy stores memberships of two members of red, and returns the request that names one of them as deputy of the other.
func (w *world) deputy() (path, body string) {
	w.t.Helper()
	w.join(red, "red-owner")
	w.join(red, "red-member")
	until := w.Clock().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	return "/deputies/mem_owner", fmt.Sprintf(`{"deputy_membership_id":"mem_member","until":"%s"}`, until)
}

// join stores the membership of the user of a session.
func (w *world) join(tenant id.Tenant, session string) {
	w.t.Helper()
	_, role, _ := strings.Cut(session, "-")
	value := fmt.Appendf(nil, `{"membership_id":"mem_%s","role":"%s","since":"2026-11-20T12:00:00.000Z"}`, role, role)
	err := w.Engine.Write(w.t.Context(), tenant, []storage.Change{{Kind: "membership", Key: "acc_" + session, Value: value, If: storage.AnyVersion}})
	if err != nil {
		w.t.Fatal(err)
	}
}

const standardExport = `{"url":"https://logs.example/v1/logs","format":"ocsf","from":"now"}`

// changes returns a request for each route that changes something. It creates the objects that they need.
func changes() map[string]func(w *world) (path, body string) {
	key := func(w *world) string { return "/ingest-keys/" + w.key(red) }
	agents := func(w *world) string { return "/agents/" + string(w.first[red].Agent) }
	agentKey := func(w *world) string { return agents(w) + "/keys/" + string(w.first[red].Key) }
	draft := func(w *world) string {
		w.call(201, "POST", "/policies", `{"policy_id":"p","name":"P","rules":[`+paymentRule+`]}`)
		return "/policies/p"
	}
	endpoint := func(w *world) string {
		return "/webhooks/" + w.call(201, "POST", "/webhooks", standardEndpoint)["endpoint_id"].(string)
	}
	ballot := func(w *world) (path, body string) {
		a := w.ask(red)
		return "/approvals/" + string(a.ID), `{"vote":"deny","action_digest":"` + a.ActionDigest.String() + `"}`
	}
	exporting := func(w *world) { w.call(200, "PUT", "/stream-export", standardExport) }
	witnesses := func(w *world) string {
		return fmt.Sprintf(`{"policy":%s}`, quoted(w.house.PolicyLine("house")+"quorum house\n"))
	}
	of := func(path, body string) func(*world) (string, string) {
		return func(*world) (string, string) { return path, body }
	}
	at := func(object func(*world) string, below, body string) func(*world) (string, string) {
		return func(w *world) (string, string) { return object(w) + below, body }
	}
	return map[string]func(w *world) (path, body string){
		"POST /ingest-keys":                          of("/ingest-keys", `{"name":"new"}`),
		"PATCH /ingest-keys/{keyId}":                 at(key, "", `{"name":"another"}`),
		"DELETE /ingest-keys/{keyId}":                at(key, "", ""),
		"POST /agents":                               of("/agents", `{"agent_id":"new-bot","display_name":"New"}`),
		"PATCH /agents/{agentId}":                    at(agents, "", `{"display_name":"another"}`),
		"POST /agents/{agentId}/keys/{keyId}/retire": at(agentKey, "/retire", ""),
		"POST /agents/{agentId}/keys/{keyId}/revoke": at(agentKey, "/revoke", `{"reason":"lost"}`),
		"POST /policies":                             of("/policies", `{"policy_id":"q","name":"Q","rules":[]}`),
		"PATCH /policies/{policyId}":                 at(draft, "", `{"name":"another"}`),
		"DELETE /policies/{policyId}":                at(draft, "", ""),
		"POST /policies/{policyId}/activate":         at(draft, "/activate", ""),
		"POST /policies/check":                       of("/policies/check", `{"name":"n","rules":[]}`),
		"POST /policies/{policyId}/simulate":         at(draft, "/simulate", `{"last":10}`),
		"POST /approvals/{approvalId}/revoke":        func(w *world) (string, string) { path, _ := ballot(w); return path + "/revoke", `{}` },
		"POST /approvals/{approvalId}/votes":         func(w *world) (string, string) { path, body := ballot(w); return path + "/votes", body },
		"POST /approvals/{approvalId}/votes/options": func(w *world) (string, string) {
			for _, who := range []string{"red-owner", "red-admin"} {
				w.registerVoter(who)
			}
			path, body := ballot(w)
			return path + "/votes/options", body
		},
		"POST /voter-keys/options": func(w *world) (string, string) {
			key := w.passkey("red-owner")
			return "/voter-keys/options", `{"credential_id":"` + base64URL(key.Credential) + `"}`
		},
		"POST /voter-keys": func(w *world) (string, string) {
			return "/voter-keys", w.voterKeyBody("red-owner", w.passkey("red-owner"))
		},
		"DELETE /voter-keys/{credentialId}": func(w *world) (string, string) {
			return "/voter-keys/" + base64URL(w.registerVoter("red-owner").Credential), ""
		},
		"PUT /deputies/{membershipId}": func(w *world) (string, string) { return w.deputy() },
		"DELETE /deputies/{membershipId}": func(w *world) (string, string) {
			path, body := w.deputy()
			w.call(200, "PUT", path, body)
			return path, ""
		},
		"POST /webhooks":                     of("/webhooks", standardEndpoint),
		"PATCH /webhooks/{webhookId}":        at(endpoint, "", `{"name":"another"}`),
		"DELETE /webhooks/{webhookId}":       at(endpoint, "", ""),
		"POST /webhooks/callback-key/rotate": of("/webhooks/callback-key/rotate", ""),
		"POST /webhooks/{webhookId}/rotate":  at(endpoint, "/rotate", ""),
		"POST /webhooks/{webhookId}/test":    at(endpoint, "/test", ""),
		"PUT /stream-export":                 of("/stream-export", standardExport),
		"POST /coverage":                     of("/coverage", standardCoverage),
		"PUT /columns":                       of("/columns", `{"columns":["amount_usd"]}`),
		"PUT /tool-keys":                     of("/tool-keys", `{"keys":["`+toolKey("did:web:payments.example", 1)+`"]}`),
		"PUT /views":                         of("/views", `{"name":"Refunds","search":"tool:payments.refund"}`),
		"DELETE /views": func(w *world) (string, string) {
			w.call(200, "PUT", "/views", `{"name":"Refunds","search":"tool:payments.refund"}`)
			return "/views?name=refunds", ""
		},
		"PUT /witnesses": func(w *world) (string, string) { return "/witnesses", witnesses(w) },
		"DELETE /witnesses": func(w *world) (string, string) {
			w.call(200, "PUT", "/witnesses", witnesses(w))
			return "/witnesses", ""
		},
		"POST /witnesses/ask":      of("/witnesses/ask", ""),
		"DELETE /stream-export":    func(w *world) (string, string) { exporting(w); return "/stream-export", "" },
		"POST /stream-export/test": func(w *world) (string, string) { exporting(w); return "/stream-export/test", "" },
		"PATCH /organization":      of("/organization", `{"name":"another"}`),
		"POST /events/{eventId}/erase": func(w *world) (string, string) {
			return "/events/" + string(w.secretEvent()) + "/erase", `{"reason":"test_data"}`
		},
		"POST /erasures": func(w *world) (string, string) {
			w.secretEvent()
			return "/erasures", `{"trace_id":"trc-secret","reason":"test_data"}`
		},
		"POST /agents/{agentId}/keys": func(w *world) (string, string) {
			return agents(w) + "/keys", registration(red, w.first[red].Agent, "", edkey.NewPrivate())
		},
		"DELETE /tokens/{tokenId}": func(w *world) (string, string) {
			name, _ := w.token("red-owner", "admin")
			return "/tokens/" + name, ""
		},
		"POST /tokens": func(w *world) (string, string) {
			return "/tokens", fmt.Sprintf(`{"name":"ci","role":"admin","expires_at":%q}`, w.Clock().Add(time.Hour).Format(time.RFC3339))
		},
		"DELETE /shares/{shareId}": func(w *world) (string, string) {
			made, _ := w.share("red-owner", "")
			return "/shares/" + made, ""
		},
		"POST /shares": func(w *world) (string, string) {
			return "/shares", fmt.Sprintf(`{"note":"KPMG","query":"tool=acme.refund","expires_at":%q}`, w.Clock().Add(time.Hour).Format(time.RFC3339))
		},
		"POST /policies/{policyId}/deactivate": func(w *world) (string, string) {
			path := draft(w)
			w.call(200, "POST", path+"/activate", "")
			return path + "/deactivate", ""
		},
		"POST /webhooks/{webhookId}/replay": func(w *world) (string, string) {
			dead := fmt.Appendf(nil, `{"organization_id":%q,"url":"https://a.example/","type":"approval.denied","body":{},"created_at":"2026-11-20T12:00:00.000Z",
				"next_at":"2026-11-20T12:00:00.000Z","tries":10,"trouble":"answered 500"}`, ledgertest.Organization(red))
			if err := w.Store.Write(w.t.Context(), red, []storage.Change{{Kind: "outbox_dead", Key: "msg_1", Value: dead}}); err != nil {
				w.t.Fatal(err)
			}
			return "/webhooks/msg_1/replay", ""
		},
	}
}

// If an organization moves to another node during a read, the other node answers, whenever the move happens.
func TestEveryReadWhileTheOrganizationMoves(t *testing.T) {
	w, m := newMovingWorld(t)
	question := w.ask(red)
	run := w.run(red, "exec-0", 1)
	endpoint := w.call(201, "POST", "/webhooks", standardEndpoint)["endpoint_id"].(string)
	w.call(200, "PUT", "/stream-export", standardExport)
	name := "evt-own"
	w.sendDecided(red, name, map[string]any{"agent_id": w.first[red].Agent, "key_id": w.first[red].Key},
		event.Policy{Evaluated: true, Effective: id.Allow, PolicyID: "none", RuleID: "none", Engine: "rules", EvaluatedAt: id.InstantOf(w.Clock())})
	erasure := w.call(202, "POST", "/events/"+name+"/erase", `{"reason":"test_data"}`)["erasure_id"].(string)
	names := strings.NewReplacer("/v1/console", "", "{key}", question.IngestKeyID, "{agent}", string(w.first[red].Agent), "{policy}", "p",
		"{approval}", string(question.ID), "{run}", string(run.ID), "{webhook}", endpoint, "{erasure}", erasure, "{event}", name,
		"{trace}", "trc")
	for _, route := range w.routed {
		if route.Method != "GET" {
			continue
		}
		path, looks := names.Replace(route.Pattern), 1
		for moved := true; moved && looks < maxLooks; looks++ {
			m.Begin(looks)
			status, text := w.read(path)
			if moved, _ = m.End(); status != 200 {
				t.Errorf("%s at look %d: got %d %s", path, looks, status, text)
			}
		}
		if looks == maxLooks {
			t.Errorf("%s: %d looks for an owner", path, looks)
		}
	}
}

// If an organization moves to another node while a link is opened, the other node answers, whenever the move happens.
func TestSharedViewWhileTheOrganizationMoves(t *testing.T) {
	w, m := newMovingWorld(t)
	_, secret := w.share("red-owner", "")
	passes := 0
	for looks, moved := 1, true; moved; looks++ {
		w.Pass(share.Pause) // the opening is recorded
		m.Begin(looks)
		g := w.doWith(w.handler, httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil))
		var passed int
		if moved, passed = m.End(); g.status != 200 {
			t.Errorf("file, look %d: got %d %s", looks, g.status, g.text)
		}
		passes += passed
		m.Begin(looks)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
		err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) error {
			_, err := v.Acts(ctx, "", 1)
			return err
		})
		away, _ := m.End()
		if _, elsewhere := errors.AsType[*admission.Elsewhere](err); err != nil && !elsewhere {
			t.Errorf("page, look %d: got %v", looks, err)
		}
		moved = moved || away
	}
	if passes < 3 {
		t.Errorf("passed %d times", passes)
	}
}

// read reads a path. An evidence pack may be cut off after it began.
func (w *world) read(path string) (status int, text string) {
	defer func() {
		if why := recover(); why != nil && (path != "/evidence.zip" || why != http.ErrAbortHandler) {
			panic(why)
		}
	}()
	status = 200 // of an answer that is cut off
	g := w.do(w.request("GET", path, ""))
	return g.status, g.text
}

// An organization moves to another node at each step of each call that changes something. The call is passed on and
// applied once: the answer is the same as without the move, or reports an unknown outcome after the change was
// committed.
func TestEveryChangeWhileTheOrganizationMoves(t *testing.T) {
	all := changes()
	for _, route := range writeRoutes(t) {
		prepare := all[route]
		if prepare == nil {
			t.Errorf("%s is not tried", route)
			continue
		}
		t.Run(strings.ReplaceAll(route, "/", " "), func(t *testing.T) { moveDuring(t, route, prepare) })
	}
}

// maxLooks bounds the number of ownership checks during one call.
const maxLooks = 40

func moveDuring(t *testing.T, route string, prepare func(*world) (path, body string)) {
	method, _, _ := strings.Cut(route, " ")
	who, status, changed, passes := "red-owner", 0, []string(nil), 0
	if strings.HasSuffix(route, "/votes") {
		who = "red-admin" // the owner made the request
	}
	for at := range maxLooks {
		w, m := newMovingWorld(t)
		path, body := prepare(w)
		before, other := w.kinds(red), w.kinds(blue)
		m.Begin(at)
		g := w.do(w.request(method, path, body, as(who)))
		moved, passed := m.End()
		did := w.kinds(red)[len(before):]
		switch {
		case at == 0:
			if status, changed = g.status, did; status >= 400 {
				t.Fatalf("undisturbed: got %d %s", status, g.text)
			}
		case !moved:
			if passes == 0 && at > 1 {
				t.Errorf("passed at none of %d looks", at-1)
			}
			return
		case !slices.Equal(did, changed):
			t.Errorf("at look %d: states %q, want %q; %d %s", at, did, changed, g.status, g.text)
		case g.status == status && passed == 1:
			passes++
		case g.status == status && passed == 0: // the check belonged to other work or made no difference
		case g.status != http.StatusServiceUnavailable || !strings.Contains(g.text, `"outcome_unknown"`) || passed > 0:
			t.Errorf("at look %d: got %d %s, passed %d times, want %d", at, g.status, g.text, passed, status)
		}
		if !slices.Equal(w.kinds(blue), other) {
			t.Errorf("at look %d: blue has %q", at, w.kinds(blue))
		}
	}
	t.Errorf("%d looks for an owner", maxLooks)
}
