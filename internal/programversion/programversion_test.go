package programversion

import (
	"runtime"
	"testing"
)

// setRelease sets the variables that the linker sets in a release.
func setRelease(t *testing.T, r, c string) {
	t.Helper()
	oldRelease, oldCommit := release, commit
	release, commit = r, c
	t.Cleanup(func() { release, commit = oldRelease, oldCommit })
}

func TestRelease(t *testing.T) {
	setRelease(t, "v1.2.3", "0123456789012345678901234567890123456789")
	v := Read()
	if got, want := v.String(), "v1.2.3 (commit 0123456789012345678901234567890123456789, "+runtime.Version()+")"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := v.Short(); got != "v1.2.3" {
		t.Errorf("short: got %q", got)
	}
}

func TestNoRelease(t *testing.T) {
	setRelease(t, "", "")
	v := Read()
	if v.Go != runtime.Version() || v.Short() == "" {
		t.Errorf("got %+v", v)
	}
	v.Commit = "abc"
	if got := v.Short(); got != "abc" {
		t.Errorf("short: got %q, want the commit", got)
	}
	v.Commit = ""
	if got, want := v.String(), v.Release+" ("+runtime.Version()+")"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
