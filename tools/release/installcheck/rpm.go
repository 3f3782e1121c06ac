package installcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// architectures maps Go's names to RPM's.
var architectures = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// runRPM runs rpm on this machine's files, with its own database, because Debian's contains no packages.
func (c *check) runRPM(ctx context.Context, args ...string) (string, error) {
	return runCommand(ctx, "rpm", append([]string{"--dbpath", filepath.Join(c.work, "rpm")}, args...)...)
}

// useRPM installs the RPM packages with their scripts, uses the service and removes them again. It ignores their
// dependencies, because RPM does not know Debian's packages.
func (c *check) useRPM(ctx context.Context) (err error) {
	var files []string
	for _, name := range []string{"agentledger", "aps"} {
		found, err := filepath.Glob(filepath.Join(c.dir, name+"-*."+architectures[runtime.GOARCH]+".rpm"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%s must contain exactly one package of %s for RPM", c.dir, name)
		}
		files = append(files, found[0])
	}
	if _, err := c.runRPM(ctx, append([]string{"--install", "--nodeps", "--nosignature"}, files...)...); err != nil {
		return err
	}
	removed := false
	defer func() {
		if !removed {
			_, failed := c.runRPM(context.Background(), "--erase", "--nodeps", "--noscripts", "agentledger", "aps")
			err = errors.Join(err, failed)
		}
	}()
	if err := c.checkInstalled(ctx); err != nil {
		return err
	}
	if said, err := c.runRPM(ctx, "--verify", "--nodeps", "agentledger", "aps"); err != nil || strings.TrimSpace(said) != "" {
		return fmt.Errorf("files differ from the package: %s, %v", said, err)
	}
	if err := c.useService(ctx); err != nil {
		return err
	}
	if _, err := c.runRPM(ctx, "--erase", "--nodeps", "agentledger", "aps"); err != nil {
		return err
	}
	removed = true
	return errors.Join(c.checkLeft(map[string]bool{"/usr/bin/agentledger": false, "/usr/bin/aps": false,
		"/usr/lib/systemd/system/agentledger.service": false, dataFolder + "/db": true, dataFolder + "/master.key": true,
		settingsFile: true}), c.removeData(), os.RemoveAll(filepath.Join(c.work, "rpm")))
}
