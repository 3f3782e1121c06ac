//go:build !unix

package childprocess

import (
	"errors"
	"os/exec"
)

func (c Command) changeUser(*exec.Cmd) error { return errors.New("not possible on this system") }
