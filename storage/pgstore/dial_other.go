//go:build !linux

package pgstore

import "syscall"

// userTimeout leaves it to the system how long sent bytes may stay unacknowledged.
func userTimeout(string, string, syscall.RawConn) error { return nil }
