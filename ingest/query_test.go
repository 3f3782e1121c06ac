package ingest_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// Every route rejects unknown, empty and repeated query parameters before any other check.
func TestWrongQueries(t *testing.T) {
	w := newWorld(t)
	traffic.CheckQueries(t, w.fast.(*edge.Router).List(), w.handler)
}
