package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// linuxPackage describes the Debian and RPM packages of one program. A package contains the program, its units and
// documents, and no settings, keys or secrets. Its bytes depend only on the files and the time.
type linuxPackage struct {
	Name    string // agentledger or aps
	Arch    string // of GOARCH
	Version string
	Program string // path of the program
	Source  string // source tree, for units and scripts
	Time    time.Time
}

// WriteAll writes the package in both formats into dir and returns the names of the files.
func (p linuxPackage) WriteAll(dir string) ([]string, error) {
	var names []string
	for _, form := range []struct {
		name     string
		packager nfpm.Packager
	}{{"deb", deb.Default}, {"rpm", rpm.DefaultRPM}} {
		info, packager := p.describe(), form.packager
		if err := nfpm.PrepareForPackager(info, form.name); err != nil {
			return nil, fmt.Errorf("write package: %w", err)
		}
		name := packager.ConventionalFileName(info)
		out, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("write package: %w", err)
		}
		if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
			return nil, fmt.Errorf("write package %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

func (p linuxPackage) describe() *nfpm.Info {
	scripts := func(name string) string { return filepath.Join(p.Source, "deploy/packages", p.Name+"."+name) }
	description := "Transparency log service for AI agents\nThe service and its operator's commands."
	if p.Name == "aps" {
		description = "Signs, sends and verifies agents' events\nFor agents, auditors and monitors of an agentledger service."
	}
	info := &nfpm.Info{
		Name: p.Name, Arch: p.Arch, Platform: "linux", Version: p.Version, Release: "1", Section: "net",
		Priority: "optional", Maintainer: "The agentledger authors", Description: description, License: "Apache-2.0",
		MTime: p.Time,
		Overridables: nfpm.Overridables{
			Contents: p.contents(),
			Scripts: nfpm.Scripts{PostInstall: scripts("postinst"), PreRemove: scripts("prerm"),
				PostRemove: scripts("postrm")},
		},
	}
	info.RPM.BuildHost, info.RPM.Compression = "reproducible", "gzip:6"
	info.Deb.Compression = "gzip" // xz saves a tenth and takes half a minute per package
	return nfpm.WithDefaults(info)
}

// contents are the files of the package.
func (p linuxPackage) contents() files.Contents {
	file := func(source, target string, mode os.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: target, FileInfo: &files.ContentFileInfo{
			Owner: "root", Group: "root", Mode: mode, MTime: p.Time}}
	}
	tree := func(name string) string { return filepath.Join(p.Source, name) }
	folder := "/usr/share/doc/" + p.Name + "/"
	contents := files.Contents{
		file(p.Program, "/usr/bin/"+p.Name, 0o755),
		file(tree("LICENSE"), folder+"copyright", 0o644),
		file(tree("README.md"), folder+"README.md", 0o644),
	}
	if p.Name == "aps" {
		return append(contents,
			file(tree("deploy/agentledger-monitor@.service"), "/usr/lib/systemd/system/agentledger-monitor@.service", 0o644),
			file(tree("deploy/agentledger-monitor@.timer"), "/usr/lib/systemd/system/agentledger-monitor@.timer", 0o644),
			file(tree("deploy/packages/aps.sysusers"), "/usr/lib/sysusers.d/agentledger-monitor.conf", 0o644))
	}
	return append(contents,
		file(tree("deploy/agentledger.service"), "/usr/lib/systemd/system/agentledger.service", 0o644),
		file(tree("deploy/packages/agentledger.sysusers"), "/usr/lib/sysusers.d/agentledger.conf", 0o644),
		file(tree("deploy/agentledger.json"), folder+"agentledger.json", 0o644),
		file(tree("deploy/alerts.yaml"), folder+"alerts.yaml", 0o644),
		file(tree("deploy/dashboard.json"), folder+"dashboard.json", 0o644))
}
