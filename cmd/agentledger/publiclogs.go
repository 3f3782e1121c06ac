package main

import (
	"context"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/operate/loglist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/web"
)

// publicLogList returns the logs that the operator lists publicly. A log is listed only if the directory or the list for
// witnesses has it. The directory takes precedence, because its own log proves the list. It is safe for concurrent use.
type publicLogList struct {
	Slug      id.Slug              // of the directory's organization, or ""
	Listings  *directory.Directory // or nil
	Witnessed *loglist.List        // list for witnesses, or nil
}

// Directory implements web.Logs.
func (l publicLogList) Directory() id.Slug { return l.Slug }

// ListLogs implements web.Logs.
func (l publicLogList) ListLogs(ctx context.Context, after string, limit int) ([]web.ListedLog, string, error) {
	switch {
	case l.Listings != nil:
		return l.listDirectory(ctx, after, limit)
	case l.Witnessed != nil && l.Witnessed.Current() != nil:
		logs, next := listKeys(l.Witnessed.Current().Keys, after, limit)
		return logs, next, nil
	}
	return nil, "", fault.New(fault.NotFound, "Not found")
}

func (l publicLogList) listDirectory(ctx context.Context, after string, limit int) ([]web.ListedLog, string, error) {
	found, err := l.Listings.List(ctx, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].Path
	}
	logs := make([]web.ListedLog, len(found))
	for i, one := range found {
		logs[i] = web.ListedLog{Path: one.Path, Size: one.Size}
	}
	return logs, next, nil
}

// listKeys returns a page of ascending vkeys, whose names are the origins of logs.
func listKeys(keys []string, after string, limit int) (logs []web.ListedLog, next string) {
	at, found := slices.BinarySearch(keys, after)
	if found {
		at++
	}
	end := min(at+limit, len(keys))
	for _, key := range keys[at:end] {
		origin, _, _ := strings.Cut(key, "+")
		_, path, _ := strings.Cut(origin, "/o/")
		logs = append(logs, web.ListedLog{Path: path, Key: key})
	}
	if end < len(keys) {
		next = keys[end-1]
	}
	return logs, next
}

// publicHashes finds events by hash for the pages. It is safe for concurrent use.
type publicHashes struct {
	Index   *index.Index
	StandIn *index.Index // finds events of logs that other nodes own, in reads in their place; nil: there is none
}

// notOwner is the code of a log that another node owns (package log).
const notOwner = "not_owner"

// IndexOf implements web.Hashes.
func (h publicHashes) IndexOf(ctx context.Context, t id.Tenant, hash id.Hash) (id.Index, error) {
	row, err := h.Index.Find(ctx, t, hash.String())
	if h.StandIn != nil && fault.Of(err).Code == notOwner {
		row, err = h.StandIn.Find(ctx, t, hash.String())
	}
	return row.Index, err
}

// publicActs joins events to acts for the pages. It is safe for concurrent use.
type publicActs struct {
	Index   *index.Index
	StandIn *index.Index // like publicHashes.StandIn
}

// ActsOf implements web.Acts.
func (p publicActs) ActsOf(ctx context.Context, t id.Tenant, at []id.Index) (map[id.Index]web.Act, error) {
	rows, err := p.Index.ActsOf(ctx, t, at)
	if p.StandIn != nil && fault.Of(err).Code == notOwner {
		rows, err = p.StandIn.ActsOf(ctx, t, at)
	}
	if err != nil {
		return nil, err
	}
	acts := make(map[id.Index]web.Act, len(rows))
	for at, row := range rows {
		acts[at] = web.Act{Index: row.Index, Outcome: row.Act.Outcome.String(), Result: row.Act.Result}
	}
	return acts, nil
}

// publicNames reads the names that pages for strangers show. It is safe for concurrent use.
type publicNames struct {
	Orgs   *org.Orgs
	Agents *agent.Agents
}

// OrganizationName implements web.Names.
func (n publicNames) OrganizationName(ctx context.Context, t id.Tenant) (string, error) {
	found, err := n.Orgs.Summary(ctx, t)
	return found.Name, err
}

// AgentName implements web.Names.
func (n publicNames) AgentName(ctx context.Context, t id.Tenant, name id.Agent) (string, error) {
	found, err := n.Agents.Agent(ctx, t, name)
	return found.DisplayName, err
}
