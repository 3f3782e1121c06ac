package installcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// unitFolder is where packages, including Debian's own, install units.
const unitFolder = "/usr/lib/systemd/system"

// units are the installed ones, with a name for each template, and the maximum exposure of each service in tenths, as
// reported by systemd-analyze security: 100 is a service without any restriction.
var units = map[string]string{
	"agentledger.service":             "20",
	"agentledger-monitor@log.service": "20",
	"agentledger-monitor@log.timer":   "",
}

// checkUnits has systemd read the installed units in a separate root, because systemd may not be running here. The root
// also contains the programs and Debian's targets and slices.
func (c *check) checkUnits(ctx context.Context) error {
	root := filepath.Join(c.work, "units")
	for _, pattern := range []string{
		unitFolder + "/agentledger*", unitFolder + "/*.target", unitFolder + "/*.slice", "/usr/bin/agentledger", "/usr/bin/aps",
	} {
		if err := copyInto(root, pattern); err != nil {
			return err
		}
	}
	for unit, exposure := range units {
		// An unknown key is only a warning, which does not change the status.
		said, err := exec.CommandContext(ctx, "systemd-analyze", "verify", "--man=no", "--root="+root, unit).CombinedOutput()
		if err != nil || len(said) > 0 {
			return fmt.Errorf("systemd-analyze verify %s: %w: %s", unit, errors.Join(err, errUnit), said)
		}
		if exposure == "" {
			continue
		}
		_, err = runCommand(ctx, "systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+exposure,
			"--root="+root, unit)
		if err != nil {
			return err
		}
	}
	return nil
}

var errUnit = errors.New("systemd rejects the unmodified unit")

// copyInto copies the files of a pattern to the same paths below root. It follows links.
func copyInto(root, pattern string) error {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return fmt.Errorf("copy %s: no such file", pattern)
	}
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		content, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(root+name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(root+name, content, info.Mode().Perm())
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}
