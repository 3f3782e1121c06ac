package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/operate/witness"
)

// brokenStatus has no report.
type brokenStatus struct{}

func (brokenStatus) Report(context.Context) (*status.Report, error) {
	return nil, errors.New("a secret cause")
}

func (brokenStatus) ReportOrganization(context.Context, id.Tenant) (*status.Organization, error) {
	return nil, fault.New(fault.Unavailable, "The store can't be reached")
}

// noAnchors and noWitnesses stand for a service without them.
type noAnchors struct{}

func (noAnchors) Size(id.Origin) (id.Index, bool) { return 0, false }

type noWitnesses struct{}

func (noWitnesses) Status(context.Context, id.Tenant) (witness.Status, error) {
	return witness.Status{}, nil
}

// Only the operator can read the status of the service.
func TestStatus(t *testing.T) {
	const path = "/v1/id/platform/status"
	w := newWorld(t)
	w.organization("red")
	w.organization("blue")
	var frozen []id.Tenant
	unready := ""
	reports := status.New(status.Options{Metrics: prometheus.NewRegistry(), Ledgers: w.Ledgers, Orgs: w.orgs,
		Worst: func() []id.Tenant { return frozen }, Waits: func() map[id.Tenant]time.Time { return nil },
		Behind: func(int) []id.Tenant { return nil }, AnchorSizes: noAnchors{}, Cosignatures: noWitnesses{},
		CountDue: func(context.Context, int) (int, error) { return 0, nil },
		Nodes:    func() []status.Node { return []status.Node{{ID: "aa", Host: "127.0.0.1:1", Self: true, Shards: 1024}} },
		Ready:    func(context.Context) string { return unready }, Clock: w.Clock, Version: "v1", Engine: "embedded",
		DataDir: t.TempDir()}) // and no other directories, because the machine's volume may be nearly full
	w.serveWith(func(o *identity.Options) { o.Operator.Status = reports })
	answers(t, "a stranger", w.call("GET", path, ""), 401, refusal("Invalid platform secret"))
	ask := func() (r status.Report) {
		w.decode(w.platform("GET", path, ""), 200, &r)
		return r
	}
	if r := ask(); r.State != status.Good || !r.Ready || len(r.Worst) > 0 || len(r.Nodes) != 1 || !r.Nodes[0].Self {
		t.Errorf("got %+v", r)
	}
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Ledgers.Freeze(t.Context(), tenant, "for a test"); err != nil {
		t.Fatal(err)
	}
	frozen, unready = []id.Tenant{tenant}, "the store can't be read"
	r := ask()
	if r.State != status.Attention || r.Ready || len(r.Findings) != 1 || len(r.Worst) != 1 || r.Worst[0].Slug != "red" {
		t.Errorf("got %+v", r)
	}
	const of = "/v1/id/platform/organizations/"
	answers(t, "a stranger", w.call("GET", of+"red/status", ""), 401, refusal("Invalid platform secret"))
	for slug, state := range map[string]string{"red": status.Attention, "blue": status.Good} {
		var one status.Organization
		w.decode(w.platform("GET", of+slug+"/status", ""), 200, &one)
		var same status.Organization
		w.decode(w.platform("GET", of+one.OrganizationID.String()+"/status", ""), 200, &same)
		if string(one.Slug) != slug || one.State != state || same.Origin != one.Origin || one.Origin == "" {
			t.Errorf("%s: got %+v, %+v", slug, one, same)
		}
	}
	if got := w.platform("GET", of+"green/status", ""); got.Code != 404 {
		t.Errorf("an unknown organization: got %d %s", got.Code, got.Body)
	}
	w.serveWith(func(o *identity.Options) { o.Operator.Status = brokenStatus{} })
	if got := w.platform("GET", of+"red/status", ""); got.Code != 503 {
		t.Errorf("a store that is away: got %d %s", got.Code, got.Body)
	}
	if got := w.platform("GET", path, ""); got.Code != 500 || strings.Contains(got.Body.String(), "secret") {
		t.Errorf("without metrics: got %d %s", got.Code, got.Body)
	}
}
