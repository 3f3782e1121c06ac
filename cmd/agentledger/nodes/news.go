package nodes

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
)

const newsName = "news"

// newsPause is how long this node collects changes before it sends them, so that a log which grows a thousand times is
// sent once.
const newsPause = time.Second

// teller holds the changes of one kind on this node for the others.
type teller struct {
	kind    cluster.NoteKind
	changed *syncs.Inbox[id.Tenant]
}

// Exchange notifies the other nodes of ledgers that change on this node, from Start on, and returns an inbox of those that
// change there. follow starts to collect the changes on this node. Exchange must be called before Start. For a process
// that serves alone, the inbox is nil.
func (n *Node) Exchange(kind cluster.NoteKind, follow func() *syncs.Inbox[id.Tenant]) *syncs.Inbox[id.Tenant] {
	if n == nil {
		return nil
	}
	n.tellers = append(n.tellers, teller{kind, follow()})
	if kind == cluster.Grown {
		return n.news.Grown
	}
	return n.news.Relisted
}

// spreadNews sends the changes of one kind to the other nodes until ctx ends.
func (n *Node) spreadNews(ctx context.Context, t teller) {
	for {
		select {
		case <-t.changed.Ready():
		case <-ctx.Done():
			return
		}
		if syncs.Sleep(ctx, newsPause) != nil {
			return
		}
		changed, _ := t.changed.Take()
		notes := make([][]byte, len(changed))
		for i, tenant := range changed {
			notes[i] = cluster.NoteOf(t.kind, tenant)
		}
		n.exchange.Spread(newsName, notes)
	}
}
