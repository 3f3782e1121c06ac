package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/operate/status"
)

// brokenStatus has no report.
type brokenStatus struct{}

func (brokenStatus) Report(context.Context) (*status.Report, error) {
	return nil, errors.New("a secret cause")
}

// The operator's programs learn whether the service is well; nobody else does.
func TestStatus(t *testing.T) {
	const path = "/v1/id/platform/status"
	w := newWorld(t)
	w.organization("red")
	w.organization("blue")
	var frozen []id.Tenant
	unready := ""
	reports := status.New(status.Options{Metrics: prometheus.NewRegistry(), Ledgers: w.Ledgers, Orgs: w.orgs,
		Worst: func() []id.Tenant { return frozen }, Waits: func() map[id.Tenant]time.Time { return nil },
		CountDue: func(context.Context, int) (int, error) { return 0, nil },
		Ready:    func(context.Context) string { return unready }, Clock: w.Clock, Version: "v1", Engine: "embedded",
		DataDir: t.TempDir(), Folders: map[string]string{"data": t.TempDir()}})
	w.serveWith(func(o *identity.Options) { o.Operator.Status = reports })
	answers(t, "a stranger", w.call("GET", path, ""), 401, refusal("Invalid platform secret"))
	ask := func() (r status.Report) {
		w.decode(w.platform("GET", path, ""), 200, &r)
		return r
	}
	if r := ask(); r.State != status.Good || !r.Ready || len(r.Worst) > 0 {
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
	w.serveWith(func(o *identity.Options) { o.Operator.Status = brokenStatus{} })
	if got := w.platform("GET", path, ""); got.Code != 500 || strings.Contains(got.Body.String(), "secret") {
		t.Errorf("without metrics: got %d %s", got.Code, got.Body)
	}
}
