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

// programTargets returns the targets of a release. If platform is not empty, only those of one platform, such as
// linux/amd64.
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

// String returns a name for files, such as aps_linux_amd64.
func (t programTarget) String() string { return t.Name + "_" + t.OS + "_" + t.Arch }

// Executable returns the file name of the program.
func (t programTarget) Executable() string {
	if t.OS == "windows" {
		return t.Name + ".exe"
	}
	return t.Name
}

// Documents returns the files of the repository that are archived with the program.
func (t programTarget) Documents() []string {
	documents := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	if t.Name == "agentledger" {
		documents = append(documents, "deploy/agentledger.json", "deploy/agentledger.service")
	}
	return documents
}

// programSource is a source tree. The result of Build depends only on the sources, the version, the commit, the note and
// the Go release, not on the folder, the time or the machine. No C code is linked.
type programSource struct {
	Dir     string
	Version string // 1.2.3
	Commit  string // 40 hex digits
	// ClientsNote is the signed note of the clients' packages in base64, which the service has; "" if it is unsigned.
	ClientsNote string
	Cache       string // folder of Go's build cache; if empty, the default
}

const (
	versionPackage = "github.com/agentledger/agentledger/internal/programversion"
	clientsPackage = "github.com/agentledger/agentledger/clients"
)

// Build writes the program into a separate folder below dir and returns its path.
func (s programSource) Build(ctx context.Context, t programTarget, dir string) (string, error) {
	file := filepath.Join(dir, t.String(), t.Executable())
	linked := "-s -w -buildid= -X " + versionPackage + ".release=v" + s.Version +
		" -X " + versionPackage + ".commit=" + s.Commit +
		" -X " + clientsPackage + ".note=" + s.ClientsNote
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
