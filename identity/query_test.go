package identity_test

import "testing"

// Every route refuses query parameters that it does not take, empty ones and repeated ones, before anything else.
func TestWrongQueries(t *testing.T) {
	w := newWorld(t)
	traffic.CheckQueries(t, w.routed, w.handler)
}
