package cluster

import (
	"fmt"
	"strconv"
)

// Protocol is the latest protocol of calls between nodes that this program supports, and oldestProtocol the oldest.
//
// Two nodes use the latest protocol that both support. A new header, a new journal or a new kind of note does not need a
// new protocol, because nodes ignore those that they do not know. A change that an older node would misread does.
// oldestProtocol is raised one version later, so that nodes of two consecutive versions can reach each other.
const (
	Protocol       = 1
	oldestProtocol = 1
)

// Speaks returns the protocol for calls to a node, or an error if the node's program is too old.
func (n Node) Speaks() (int, error) {
	protocol := min(max(n.Protocol, 1), Protocol)
	if protocol < oldestProtocol {
		return 0, fmt.Errorf("node %s at %s has version %s and speaks protocol %d, but this node speaks %d to %d: "+
			"upgrade that node", n.ID, n.URL, n.Version, n.Protocol, oldestProtocol, Protocol)
	}
	return protocol, nil
}

// ParseProtocol parses the protocol of a call; an empty text means 1. If this program does not support it, the error is
// a message for the operator of the other node.
func ParseProtocol(text string) (protocol int, err error) {
	if protocol = 1; text != "" {
		if protocol, err = strconv.Atoi(text); err != nil {
			return 0, fmt.Errorf("the protocol of a call is not a number")
		}
	}
	if protocol < oldestProtocol || protocol > Protocol {
		return protocol, fmt.Errorf("this node speaks protocol %d to %d, but not %d: upgrade the older "+
			"nodes to a newer version", oldestProtocol, Protocol, protocol)
	}
	return protocol, nil
}
