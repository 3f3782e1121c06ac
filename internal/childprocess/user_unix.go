//go:build unix

package childprocess

import (
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// changeUser makes the command run as c.User.
func (c Command) changeUser(command *exec.Cmd) error {
	u, err := user.Lookup(c.User)
	if err != nil {
		return err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return err
	}
	ids := make([]uint32, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("id %.32q is no number", text)
		}
		ids = append(ids, uint32(n))
	}
	command.SysProcAttr.Credential = &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}
	// The first value of a variable is dropped if the variable is set again later.
	home := []string{"HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username}
	for name, value := range c.Env {
		home = append(home, name+"="+value)
	}
	command.Env = append(command.Env, home...)
	return nil
}
