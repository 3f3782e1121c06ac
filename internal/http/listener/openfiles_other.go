//go:build !unix

package listener

// OpenFileLimit returns an unlimited number, because the limit is unknown.
func OpenFileLimit() int { return unlimited }
