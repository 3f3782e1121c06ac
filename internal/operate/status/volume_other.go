//go:build !linux && !darwin && !freebsd

package status

import "errors"

// measureVolume is not supported on this system.
func measureVolume(string) (space, error) { return space{}, errors.ErrUnsupported }
