package main

import (
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/loglist"
	"github.com/agentledger/agentledger/publicapi"
)

// buildLogList makes the service list its logs for witnesses if the settings have a contact. The list names every
// organization by its ID, so there is none unless the operator configures it.
func (s *service) buildLogList(c config.Serve) {
	if c.LogListContact == "" {
		return
	}
	s.logList = loglist.New(loglist.Options{
		Ledgers: s.ledgers, Store: s.store.Engine, Contact: c.LogListContact, PerDay: c.LogListRequests(),
		Others: s.node.Exchange(cluster.Relisted, s.ledgers.Relisted),
		Logger: s.watch.logger, Metrics: s.watch.registry,
	})
}

// publicLogList is the list for the public surface, or nil.
func (s *service) publicLogList() publicapi.LogList {
	if s.logList == nil {
		return nil
	}
	return s.logList
}

// publicLogs returns the logs that the pages list.
func (s *service) publicLogs() publicLogList {
	l := publicLogList{Listings: s.directory, Witnessed: s.logList}
	if s.directoryName != nil {
		l.Slug = s.directoryName.Slug
	}
	return l
}
