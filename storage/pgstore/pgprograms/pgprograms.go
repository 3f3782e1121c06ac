// Package pgprograms finds the programs of PostgreSQL on this machine, and the user that may run its server.
//
// Invariants:
//
//   - An installation has all programs that a server needs, of version Oldest or newer.
//   - Nothing is started but the programs that tell where and of which version they are.
package pgprograms

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNone says that there is no installation. Callers tell how to get one.
var ErrNone = errors.New("the programs of PostgreSQL 15 or newer are not here")

// Oldest is the oldest version of PostgreSQL that package pgstore takes.
const Oldest = 15

// Installation is the programs of PostgreSQL, and the user that they run as.
type Installation struct {
	Bin     string              // their folder
	Version string              // such as 15.13
	User    *syscall.Credential // nil: the one of this process
}

// Command returns the command of a program, which runs as the user and is killed when ctx ends. attributes are those of
// the process, without a credential. The working folder is the root, because that of this process may be closed to
// the user.
func (i Installation) Command(ctx context.Context, attributes *syscall.SysProcAttr, name string,
	args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(i.Bin, name), args...)
	c.Dir, c.SysProcAttr = "/", attributes
	c.SysProcAttr.Credential = i.User
	return c
}

// Find returns the newest installation on this machine, or ErrNone.
func Find() (Installation, error) { return newestOf(programFolders()) }

// newestOf returns the installation in the first folder that has one.
func newestOf(folders []string) (Installation, error) {
	for _, bin := range folders {
		version, found := versionOf(bin)
		if !found {
			continue
		}
		owner, err := unprivilegedUser()
		return Installation{Bin: bin, Version: version, User: owner}, err
	}
	return Installation{}, ErrNone
}

// programFolders lists where the programs may be, the best first.
func programFolders() []string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian; the pattern is well-formed
	slices.SortFunc(folders, func(a, b string) int { return majorOf(b) - majorOf(a) })
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	return folders
}

func majorOf(folder string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // 0 for another name, which is the last
	return n
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)\S*)`)

// versionOf returns the version of the programs in a folder, if all are there and new enough.
func versionOf(bin string) (version string, found bool) {
	for _, name := range []string{"initdb", "postgres", "pg_isready"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", false
		}
	}
	said, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	parts := versionPattern.FindStringSubmatch(string(said))
	if err != nil || parts == nil {
		return "", false
	}
	if major, err := strconv.Atoi(parts[2]); err != nil || major < Oldest {
		return "", false
	}
	return parts[1], true
}

// unprivilegedUser returns the user that a server runs as when this process is root's, because PostgreSQL refuses root.
func unprivilegedUser() (*syscall.Credential, error) {
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
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}
