// Package pgprograms finds the programs of PostgreSQL on this machine, and the user that can run its server.
//
// Invariants:
//
//   - An installation has all programs that a server needs, in version Oldest or newer.
//   - Nothing is run except programs that report their location and version.
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

// ErrNone is returned if there is no installation. Callers should explain how to install one.
var ErrNone = errors.New("PostgreSQL 15 or newer is not installed")

// Oldest is the oldest version of PostgreSQL that package pgstore supports.
const Oldest = 15

// Installation is an installation of PostgreSQL, and the user that its programs run as.
type Installation struct {
	Bin     string              // folder of the programs
	Version string              // for example 15.13
	User    *syscall.Credential // nil for the user of this process
}

// Command returns the command of a program, which runs as the user and is killed when ctx ends. attributes must not
// contain a credential. The working folder is the root, because the user may have no access to the current one.
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

// programFolders lists the folders that may contain the programs, best first.
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
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // 0 for any other name, which sorts last
	return n
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)\S*)`)

// versionOf returns the version of the programs in a folder, if all exist and are new enough.
func versionOf(bin string) (version string, found bool) {
	for _, name := range []string{"initdb", "postgres", "pg_isready"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", false
		}
	}
	output, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	parts := versionPattern.FindStringSubmatch(string(output))
	if err != nil || parts == nil {
		return "", false
	}
	if major, err := strconv.Atoi(parts[2]); err != nil || major < Oldest {
		return "", false
	}
	return parts[1], true
}

// unprivilegedUser returns the user for the server if this process runs as root, because PostgreSQL does not run as
// root.
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
