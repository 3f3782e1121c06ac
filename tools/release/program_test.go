package main

import (
	"testing"
)

func TestTargets(t *testing.T) {
	for platform, want := range map[string]int{"": 10, "linux/amd64": 2, "darwin/arm64": 2, "windows/arm64": 1, "plan9/amd64": 0} {
		if got := programTargets(platform); len(got) != want {
			t.Errorf("%q: got %v, want %d", platform, got, want)
		}
	}
	if got := (programTarget{Name: "aps", OS: "windows", Arch: "amd64"}).Executable(); got != "aps.exe" {
		t.Errorf("got %s", got)
	}
}
