package cluster_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// A node that hears of leases that it now owns uses them before its next beat, and no longer than its latest beat
// allows. News with a gap, old news, and news for a forgotten node change nothing.
func TestNewsOfLeases(t *testing.T) {
	const shards = 4
	giver, self := cluster.NewNodeID(), cluster.NewNodeID()
	given := func(to cluster.NodeID, epoch cluster.Epoch) (all []cluster.Lease) {
		for shard := range cluster.Shard(shards) {
			all = append(all, cluster.Lease{Shard: shard, Owner: to, Epoch: epoch})
		}
		return all
	}
	gift := cluster.News{From: giver, Leaving: true, Since: 1, Epoch: 2, Leases: given(self, 2)}
	for _, test := range []struct {
		name      string
		news      cluster.News
		forgotten bool
		stopped   bool
		want      bool
	}{
		{"a gift", gift, false, false, true},
		{"to another node", cluster.News{From: giver, Since: 1, Epoch: 2, Leases: given(cluster.NewNodeID(), 2)}, false, false, false},
		{"with a gap", cluster.News{From: giver, Leaving: true, Since: 2, Epoch: 3, Leases: given(self, 3)}, false, false, false},
		{"old", cluster.News{From: giver, Leaving: true, Epoch: 1, Leases: given(self, 1)}, false, false, false},
		{"none", cluster.News{}, false, false, false},
		{"to a node that was forgotten", gift, true, false, false},
		{"to a node that is being stopped", gift, false, true, false},
	} {
		st := cluster.Begin(self, shards, ownFor, deadAfter)
		st.Observe(cluster.View{Nodes: []cluster.Node{{ID: giver, Beats: 1}, {ID: self, Beats: 1}}, Epoch: 1,
			Leases: given(giver, 1)}, 0, time.Millisecond)
		if test.forgotten {
			st.Forget()
		}
		if test.stopped {
			st.Stop()
		}
		st.Hear(test.news)
		if got := st.Owns(2, 2*time.Millisecond); got != test.want {
			t.Errorf("%s: got owned %v, want %v", test.name, got, test.want)
		}
		if st.Owns(2, ownFor) {
			t.Errorf("%s: the node owns a shard although its newest beat is too old", test.name)
		}
		if _, drain := st.Plan(3 * time.Millisecond); test.want && len(drain) > 0 {
			t.Errorf("%s: the node gives %d shards back to the node that leaves", test.name, len(drain))
		}
	}
}
