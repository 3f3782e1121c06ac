//go:build !linux

package secret

// ProtectProcess does nothing on this system.
func ProtectProcess() {}
