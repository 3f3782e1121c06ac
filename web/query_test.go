package web_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// Every route refuses unknown, empty and repeated query parameters before anything else.
func TestWrongQueries(t *testing.T) {
	w := newWorld(t)
	traffic.CheckQueries(t, w.bare.(*edge.Router).List(), w.handler)
}
