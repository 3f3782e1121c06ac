package gateway

import (
	"testing"
)

// BenchmarkCall is a call of a tool that does nothing, with the service and the server in this process: the
// gateway's own time, two requests and the syncs of the journal.
func BenchmarkCall(b *testing.B) {
	o := newOffice(b)
	_, caller := startCounter(b, o, organizations[0], func(*Config) {})
	for b.Loop() {
		callTool(b, caller, "add", map[string]any{"a": 1, "b": 2})
	}
}
