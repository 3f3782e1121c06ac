//go:build !unix

package forward

// isAlive returns false, because this system cannot report it: each request opens a new connection.
func (c *connection) isAlive() bool { return false }
