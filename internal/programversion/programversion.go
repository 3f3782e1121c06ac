// Package programversion determines the release and the commit of the running program. It hides where the linker and
// the Go tool chain record them.
//
// Invariants:
//
//   - Only the linker sets release and commit, when a release is built (tools/release).
//   - A program that was built otherwise has its module version or its commit, never a release.
//   - The result never changes while a program runs.
package programversion

import "runtime/debug"

// release and commit are set by -ldflags -X.
var release, commit string

// Version identifies the version of a program.
type Version struct {
	Release string // v1.2.3; the module version of a program that is no release, such as (devel)
	Commit  string // 40 hex digits, "" for a program that was built without it
	Go      string // of the compiler: go1.26.8
	linked  bool   // the linker of a release set it
}

// Read returns the version of the running program.
func Read() Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version{Release: "unknown"}
	}
	if release != "" {
		return Version{Release: release, Commit: commit, Go: info.GoVersion, linked: true}
	}
	v := Version{Release: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

// Short returns the release; without one, it returns the commit or, failing that, the module version.
func (v Version) Short() string {
	if !v.linked && v.Commit != "" {
		return v.Commit
	}
	return v.Release
}

// String returns a text for people: "v1.2.3 (commit 0123…, go1.26.8)".
func (v Version) String() string {
	if v.Commit == "" {
		return v.Release + " (" + v.Go + ")"
	}
	return v.Release + " (commit " + v.Commit + ", " + v.Go + ")"
}
