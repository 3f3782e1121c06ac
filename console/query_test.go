package console_test

import "testing"

// Every route refuses unknown, empty and repeated query parameters before anything else.
func TestWrongQueries(t *testing.T) {
	w := newWorld(t)
	traffic.CheckQueries(t, w.routed, w.handler)
}
