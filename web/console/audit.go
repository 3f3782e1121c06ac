package console

import (
	"strconv"

	"github.com/agentledger/agentledger/web/screen"
)

const auditCalls = "/v1/console/audit"

// act is an act in the audit list.
type act struct {
	Index      uint64 `json:"log_index"`
	ID         string `json:"event_id"`
	ReceivedAt string `json:"received_at"`
	Kind       string `json:"kind"`
	Sentence   string `json:"sentence"`
	Actor      struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"actor"`
}

// auditView is the content of the audit list.
type auditView struct {
	Acts     []act
	Next     string
	Filter   filters
	Filtered bool
	Files    streams
}

func (p *pages) listActs(r *screen.Request) (any, error) {
	names := []string{"actor", "kind", "from", "to", "order"}
	var found struct {
		Acts []act  `json:"acts"`
		Next string `json:"next"`
	}
	query := listQuery(r, names...)
	if err := r.ReadList(auditCalls, query, &found); err != nil {
		return nil, err
	}
	v := &auditView{Acts: found.Acts, Next: r.NextPage(found.Next), Filter: readFilters(r, names...),
		Files: streamsOf(r, auditCalls, query)}
	v.Filtered = len(v.Filter) > 0
	return v, nil
}

func decimal(n int) string { return strconv.Itoa(n) }
