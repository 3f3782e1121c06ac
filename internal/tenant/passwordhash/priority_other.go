//go:build !linux

package passwordhash

// lowerPriority does nothing where threads have no priority of their own.
func lowerPriority() {}
