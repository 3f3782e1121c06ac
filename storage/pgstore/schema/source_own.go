//go:build !agentledger_next

package schema

// own returns the steps that this program knows.
func own() (source, error) { return released() }
