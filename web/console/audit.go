package console

import (
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const auditCalls = "/v1/console/audit"

// auditView is the content of the audit list.
type auditView struct {
	Entries  []wire.AuditEntry
	Next     string
	Filter   filters
	Filtered bool
	Files    streams
}

func (p *pages) listAudit(r *page.Request) (any, error) {
	names := []string{"actor", "kind", "from", "to", "order"}
	query := listQuery(r, names...)
	found, err := visitOf(r).Console.ListAudit(r.Context(), visitOf(r).caller, query)
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v := &auditView{Entries: found.Entries, Next: r.NextPage(found.Next), Filter: readFilters(r, names...),
		Files: streamsOf(r, auditCalls, query)}
	v.Filtered = len(v.Filter) > 0
	return v, nil
}
