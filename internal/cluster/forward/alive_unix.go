//go:build unix

package forward

import "syscall"

// isAlive reports whether an idle connection can be used for a request: the node has neither closed it nor sent
// anything.
func (c *connection) isAlive() bool {
	if c.raw == nil || c.reader.Buffered() > 0 {
		return false
	}
	alive := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		alive = err == syscall.EAGAIN
		return true
	})
	return err == nil && alive
}
