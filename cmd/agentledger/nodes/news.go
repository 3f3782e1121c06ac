package nodes

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
)

const newsName = "news"

// newsPause is how long the news of this node are gathered before they are sent, so that a log that grows a thousand
// times is told of once.
const newsPause = time.Second

// teller is the changes of one kind on this node, for the others.
type teller struct {
	kind    cluster.NoteKind
	changed *syncs.Inbox[id.Tenant]
}

// Exchange tells the other nodes of the ledgers that changed on this one, from Start on, and returns those that
// changed there. follow begins to collect the changes here. Exchange is called before Start. A process that serves
// alone tells no other process, and its inbox is nil.
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

// spreadNews gives the news of one kind to the other nodes until ctx ends.
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
