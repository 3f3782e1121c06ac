// Package installcheck installs the packages of a release on this machine, uses them as their unit does, and removes
// them again.
//
// Invariants:
//   - It runs as root on a Debian on which nothing of agentledger is installed, and returns an error on other machines.
//   - The service runs as its system user, with the arguments of the installed unit, on loopback.
//   - Everything that the check installs or writes is removed at its end, even after a failure.
package installcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	settingsFile = "/etc/agentledger/agentledger.json"
	dataFolder   = "/var/lib/agentledger"
)

// owned are the folders that packages and service create.
var owned = []string{"/etc/agentledger", dataFolder, "/var/lib/agentledger-anchors", "/etc/agentledger-monitor",
	"/var/lib/agentledger-monitor"}

// Run checks the packages for Debian and RPM, and the image, of a release folder.
func Run(ctx context.Context, dir string, out io.Writer) (err error) {
	if err := checkMachine(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "agentledger-install-")
	if err != nil {
		return fmt.Errorf("create work folder: %w", err)
	}
	c := &check{work: work, dir: dir, out: out}
	defer func() { err = errors.Join(err, c.cleanUp()) }()
	for _, name := range []string{"agentledger", "aps"} {
		found, err := filepath.Glob(filepath.Join(dir, name+"_*_"+runtime.GOARCH+".deb"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%s must contain exactly one package of %s for %s", dir, name, runtime.GOARCH)
		}
		c.packages = append(c.packages, found[0])
	}
	steps := []struct {
		name string
		take func(context.Context) error
	}{
		{"install", c.installPackages}, {"files and user", c.checkInstalled}, {"systemd accepts the units", c.checkUnits},
		{"aps verifies a signed file of the release", c.verifyRelease}, {"setup, event, verification", c.useService}, {"removal keeps data", c.checkRemoval},
		{"installed again, the data is there", c.useAgain}, {"purge keeps data", c.checkPurge},
		{"purge without data leaves nothing", c.checkEmptyPurge},
		{"RPM: installed, used, removed, data is kept", c.useRPM},
		{"the image serves, and writes its data alone", c.checkImage},
	}
	for _, s := range steps {
		if err := s.take(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintln(out, "ok  ", s.name)
	}
	return nil
}

// check is one run.
type check struct {
	work     string
	dir      string // of the release
	out      io.Writer
	packages []string
	event    string // address of the bundle of the sent event
	key      string // vkey of the log
}

func checkMachine() error {
	if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
		return errors.New("this machine is not a Debian, or the user is not root: nothing was checked")
	}
	for _, name := range append(owned, "/usr/bin/agentledger", "/usr/bin/aps") {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s is already installed: nothing was checked", name)
		}
	}
	return nil
}

func runCommand(ctx context.Context, name string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return string(said), nil
}

func (c *check) installPackages(ctx context.Context) error {
	_, err := runCommand(ctx, "dpkg", append([]string{"-i"}, c.packages...)...)
	return err
}

func (c *check) checkInstalled(ctx context.Context) error {
	for _, program := range []string{"agentledger", "aps"} {
		said, err := runCommand(ctx, "/usr/bin/"+program, "version")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(said, program+" v") || !strings.Contains(said, "commit ") {
			return fmt.Errorf("%s reports the version %q", program, said)
		}
	}
	said, err := runCommand(ctx, "stat", "-c", "%a %U %n", dataFolder, "/var/lib/agentledger-anchors", "/etc/agentledger")
	if err != nil {
		return err
	}
	want := "700 agentledger /var/lib/agentledger\n700 agentledger /var/lib/agentledger-anchors\n750 root /etc/agentledger\n"
	if said != want {
		return fmt.Errorf("folders: got %q, want %q", said, want)
	}
	if _, err := os.Stat(settingsFile); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the package contains settings: %v", err)
	}
	return nil
}

func (c *check) checkRemoval(ctx context.Context) error {
	if _, err := runCommand(ctx, "dpkg", "-r", "agentledger", "aps"); err != nil {
		return err
	}
	return c.checkLeft(map[string]bool{"/usr/bin/agentledger": false, "/usr/bin/aps": false,
		dataFolder + "/db": true, dataFolder + "/master.key": true, settingsFile: true})
}

func (c *check) checkPurge(ctx context.Context) error {
	if _, err := runCommand(ctx, "dpkg", "-P", "agentledger", "aps"); err != nil {
		return err
	}
	return c.checkLeft(map[string]bool{"/usr/bin/agentledger": false, dataFolder + "/master.key": true,
		settingsFile: true, "/var/lib/agentledger-monitor": false})
}

// checkEmptyPurge removes the data manually. Then a purge also removes the folders and the user.
func (c *check) checkEmptyPurge(ctx context.Context) error {
	if err := c.removeData(); err != nil {
		return err
	}
	if err := c.installPackages(ctx); err != nil {
		return err
	}
	if _, err := runCommand(ctx, "dpkg", "-P", "agentledger", "aps"); err != nil {
		return err
	}
	if said, err := runCommand(ctx, "getent", "passwd", "agentledger"); err == nil {
		return fmt.Errorf("the user still exists: %s", said)
	}
	left := make(map[string]bool)
	for _, name := range owned {
		left[name] = false
	}
	return c.checkLeft(left)
}

// checkLeft compares which files exist.
func (c *check) checkLeft(want map[string]bool) error {
	for name, there := range want {
		if _, err := os.Lstat(name); (err == nil) != there {
			return fmt.Errorf("%s: exists: %t, want %t", name, err == nil, there)
		}
	}
	return nil
}

func (c *check) removeData() error {
	var all error
	for _, name := range owned {
		all = errors.Join(all, os.RemoveAll(name))
	}
	return all
}

// cleanUp removes what remains, also after a failed step.
func (c *check) cleanUp() error {
	ctx := context.Background()
	_, purged := runCommand(ctx, "dpkg", "-P", "agentledger", "aps")
	all := errors.Join(purged, c.removeData(), os.RemoveAll(c.work))
	for _, user := range []string{"agentledger", "agentledger-monitor"} {
		if _, err := runCommand(ctx, "getent", "passwd", user); err == nil {
			_, err := runCommand(ctx, "userdel", user)
			all = errors.Join(all, err)
		}
	}
	return all
}
