// Package program builds the programs of a release.
//
// Invariants:
//   - A build depends on the sources, the version, the commit and the Go release alone: not on the folder, the time or
//     the machine.
//   - No C code is linked.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Target is one program for one platform.
type Target struct {
	Name string // aps or agentledger
	OS   string // of GOOS: linux, darwin, windows
	Arch string // of GOARCH: amd64, arm64
}

// Targets returns the targets of a release, only those of one platform such as linux/amd64 when it is not "".
func Targets(platform string) []Target {
	var targets []Target
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if platform != "" && platform != goos+"/"+arch {
				continue
			}
			targets = append(targets, Target{"aps", goos, arch})
			if goos != "windows" { // the service needs locks and signals that Windows does not have
				targets = append(targets, Target{"agentledger", goos, arch})
			}
		}
	}
	return targets
}

// String is a name for files: aps_linux_amd64.
func (t Target) String() string { return t.Name + "_" + t.OS + "_" + t.Arch }

// Executable is the name of the program's file.
func (t Target) Executable() string {
	if t.OS == "windows" {
		return t.Name + ".exe"
	}
	return t.Name
}

// Documents are the files of the repository that go into the archive with the program.
func (t Target) Documents() []string {
	documents := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	if t.Name == "agentledger" {
		documents = append(documents, "deploy/agentledger.json", "deploy/agentledger.service")
	}
	return documents
}

// Source is the tree that is built.
type Source struct {
	Dir     string
	Version string // 1.2.3
	Commit  string // 40 hex digits
	Cache   string // folder of Go's build cache, "" for the usual one
}

const versionPackage = "github.com/agentledger/agentledger/internal/programversion"

// Build writes the program into a folder of its own below dir and returns its path.
func (s Source) Build(ctx context.Context, t Target, dir string) (string, error) {
	file := filepath.Join(dir, t.String(), t.Executable())
	linked := "-s -w -buildid= -X " + versionPackage + ".release=v" + s.Version +
		" -X " + versionPackage + ".commit=" + s.Commit
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", linked,
		"-o", file, "./cmd/"+t.Name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, os.Stderr, os.Stderr
	cmd.Env = slices.Concat(os.Environ(), []string{"CGO_ENABLED=0", "GOOS=" + t.OS, "GOARCH=" + t.Arch,
		"GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOWORK=off"})
	if s.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+s.Cache)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", t, err)
	}
	return file, nil
}
