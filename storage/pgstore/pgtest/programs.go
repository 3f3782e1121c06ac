package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// errNoPrograms says what to do.
var errNoPrograms = errors.New("the programs of PostgreSQL 15 or newer are not here: run scripts/postgres as root, " +
	"or install the server package of your system (Debian: apt-get install postgresql; macOS: brew install postgresql)")

// programs is an installation of PostgreSQL and the user that it runs as.
type programs struct {
	bin  string
	user *syscall.Credential // nil: the one that the test runs as
}

func findPrograms() (programs, error) {
	for _, dir := range binDirs() {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err != nil {
			continue
		}
		owner, err := unprivileged()
		return programs{bin: dir, user: owner}, err
	}
	return programs{}, errNoPrograms
}

// binDirs lists where the programs may be, the best first.
func binDirs() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian; the pattern is well-formed
	slices.SortFunc(dirs, func(a, b string) int { return majorOf(b) - majorOf(a) })
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	return dirs
}

func majorOf(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

// unprivileged returns the user that servers run as when the test is root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("postgres does not run as root, and there is neither a user postgres nor a user nobody")
}

func (p programs) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir = "/" // the working directory may be closed to the user
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = endsWithUs()
	c.SysProcAttr.Credential = p.user
	return c
}

// run runs a program to its end.
func (p programs) run(name string, args ...string) error {
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
