//go:build !unix

package forward

// isAlive is not known on this system: each request opens a connection.
func (c *connection) isAlive() bool { return false }
