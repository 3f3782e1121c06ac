//go:build !unix

package listener

// OpenFileLimit returns how many files this process may have open, where nothing is known of a limit.
func OpenFileLimit() int { return unlimited }
