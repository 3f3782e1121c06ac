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
