package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// programTarget is one program for one platform.
type programTarget struct {
	Name string // aps or agentledger
	OS   string // of GOOS: linux, darwin, windows
	Arch string // of GOARCH: amd64, arm64
}

// programTargets returns the targets of a release, only those of one platform such as linux/amd64 when it is not "".
func programTargets(platform string) []programTarget {
	var targets []programTarget
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if platform != "" && platform != goos+"/"+arch {
				continue
			}
			targets = append(targets, programTarget{"aps", goos, arch})
			if goos != "windows" { // the service needs locks and signals that Windows does not have
				targets = append(targets, programTarget{"agentledger", goos, arch})
			}
		}
	}
	return targets
}

// String is a name for files: aps_linux_amd64.
func (t programTarget) String() string { return t.Name + "_" + t.OS + "_" + t.Arch }

// Executable is the name of the program's file.
func (t programTarget) Executable() string {
	if t.OS == "windows" {
		return t.Name + ".exe"
	}
	return t.Name
}

// Documents are the files of the repository that go into the archive with the program.
func (t programTarget) Documents() []string {
	documents := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	if t.Name == "agentledger" {
		documents = append(documents, "deploy/agentledger.json", "deploy/agentledger.service")
	}
	return documents
}

// programSource is the tree that is built.
type programSource struct {
	Dir     string
	Version string // 1.2.3
	Commit  string // 40 hex digits
	Cache   string // folder of Go's build cache, "" for the usual one
}

const versionPackage = "github.com/agentledger/agentledger/internal/programversion"

// Build writes the program into a folder of its own below dir and returns its path.
func (s programSource) Build(ctx context.Context, t programTarget, dir string) (string, error) {
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
