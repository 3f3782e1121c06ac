package limit

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// companyTime is for how long two organizations are in each other's company after
// requests of both have come in.
const companyTime = time.Second

// company knows whether requests of more than one organization come in.
type company struct {
	last    id.Tenant // whose request came last
	changed time.Time // when that was another one than before
}

// came notes a request.
func (c *company) came(t id.Tenant) {
	if t != c.last {
		c.last, c.changed = t, time.Now()
	}
}

// alone reports whether nobody is in anybody's company.
func (c *company) alone() bool { return time.Since(c.changed) >= companyTime }
