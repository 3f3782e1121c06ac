package console

import (
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// openFault is a problem that needs attention. URL is "" if no page helps.
type openFault struct{ Text, Name, URL string }

// readFaults reads the faults of the ledger and of receivers, and limits that are nearly reached.
func (v *view) readFaults(r *page.Request) error {
	if !v.Organization.Active {
		v.Faults = append(v.Faults, openFault{Text: "The operator has made the organization inactive: everything can be " +
			"read, and only keys can be revoked"})
	}
	if v.Organization.Fault != "" {
		v.Faults = append(v.Faults, openFault{Text: "The ledger has a fault", Name: v.Organization.Fault})
	}
	for _, bound := range []struct {
		name  string
		limit wire.PlanLimit
	}{{"events this month", v.Usage.Limits.EventsPerMonth}, {"agents", v.Usage.Limits.Agents},
		{"ingest keys", v.Usage.Limits.IngestKeys}, {"policies", v.Usage.Limits.Policies}} {
		if bound.limit.NearlyReached() {
			v.Faults = append(v.Faults, openFault{Text: "The plan is nearly used up", Name: bound.name,
				URL: r.Address("/console") + "#usage"})
		}
	}
	if err := v.readEndpoints(r); err != nil {
		return err
	}
	return v.readStreamExport(r)
}

// readEndpoints adds the webhook endpoints that are disabled or failing.
func (v *view) readEndpoints(r *page.Request) error {
	found, err := visitOf(r).Console.ListWebhooks(r.Context(), visitOf(r).caller, nil)
	if err != nil {
		return err
	}
	for _, e := range found.Endpoints {
		f := openFault{Name: e.Name, URL: r.Address("/console/webhooks", e.EndpointID)}
		if f.Name == "" {
			f.Name = e.EndpointID
		}
		switch {
		case e.State == "disabled":
			f.Text = "A webhook receiver is off"
		case e.FailingSince != 0:
			f.Text = "A webhook receiver does not take deliveries"
		default:
			continue
		}
		v.Faults = append(v.Faults, f)
	}
	return nil
}

// readStreamExport adds a failing stream export. Most organizations have no export.
func (v *view) readStreamExport(r *page.Request) error {
	export, err := visitOf(r).Console.ShowStreamExport(r.Context(), visitOf(r).caller)
	if isMissing(err) {
		return nil
	}
	if export.State == "failing" {
		v.Faults = append(v.Faults, openFault{Text: "The receiver of the stream export does not take events",
			Name: export.State, URL: r.Address("/console/settings/stream-export")})
	}
	return err
}
