package cluster_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/cluster"
)

// Nodes whose programs support other protocols are called with the latest common one. A call with an unsupported
// protocol is rejected with a message that names both sides.
func TestProtocol(t *testing.T) {
	for protocol, want := range map[int]int{0: 1, 1: 1, cluster.Protocol + 5: cluster.Protocol} {
		n := cluster.Node{Version: "v1", Protocol: protocol}
		if got, err := n.Speaks(); got != want || err != nil {
			t.Errorf("%d: got %d, %v, want %d", protocol, got, err, want)
		}
	}
	for text, ok := range map[string]bool{"": true, "1": true, "0": false, "-1": false, "99": false, "x": false} {
		_, err := cluster.ParseProtocol(text)
		if (err == nil) != ok {
			t.Errorf("%q: got %v", text, err)
		}
		if text == "99" && (!strings.Contains(err.Error(), "99") || !strings.Contains(err.Error(), "protocol 1")) {
			t.Errorf("got %v, want both protocols", err)
		}
	}
}
