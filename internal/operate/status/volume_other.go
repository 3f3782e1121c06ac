//go:build !linux && !darwin && !freebsd

package status

import "errors"

// measureVolume can't ask here.
func measureVolume(string) (space, error) { return space{}, errors.ErrUnsupported }
