package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tlog"
)

const releaseList = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e  aps_1.2.3_linux_amd64.tar.gz\n" +
	"16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4  aps_1.2.3_linux_arm64.tar.gz\n"

// writeRelease writes a signed release of two files, and returns its folder and the key.
func writeRelease(t *testing.T) (folder string, key tlog.SignerKey) {
	t.Helper()
	key, err := tlog.NewSignerKey(releasefiles.KeyName, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	note, err := key.SignNote(releaseList)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for name, text := range map[string]string{"aps_1.2.3_linux_amd64.tar.gz": "first", "aps_1.2.3_linux_arm64.tar.gz": "second",
		releasefiles.ListName: releaseList, releasefiles.NoteName: string(note.Bytes())} {
		writeText(t, filepath.Join(folder, name), text)
	}
	return folder, key
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyRelease(t *testing.T) {
	folder, key := writeRelease(t)
	signer := releasefiles.KeyName + "+" + key.Verifier().Hash().String()
	amd64 := filepath.Join(folder, "aps_1.2.3_linux_amd64.tar.gz")
	want := outcome{0, "ok    list signed by " + signer + "\nok    aps_1.2.3_linux_amd64.tar.gz\nok    aps_1.2.3_linux_arm64.tar.gz\n", ""}
	if got := aps(t, "", "verify-release", folder, "--key", key.Verifier().String()); got != want {
		t.Errorf("folder: got %+v, want %+v", got, want)
	}
	t.Setenv("APS_RELEASE_KEY", key.Verifier().String())
	want.out = "ok    list signed by " + signer + "\nok    aps_1.2.3_linux_amd64.tar.gz\n"
	if got := aps(t, "", "verify-release", amd64); got != want {
		t.Errorf("file: got %+v, want %+v", got, want)
	}
	t.Chdir(folder)
	if got := aps(t, "", "verify-release", "aps_1.2.3_linux_amd64.tar.gz"); got != want {
		t.Errorf("file in this folder: got %+v, want %+v", got, want)
	}
	if err := os.Remove(filepath.Join(folder, releasefiles.ListName)); err != nil {
		t.Fatal(err)
	}
	got := aps(t, "", "--json", "verify-release", amd64)
	var r struct {
		OK       bool   `json:"ok"`
		SignedBy string `json:"signed_by"`
		Files    []any  `json:"files"`
	}
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.status != 0 || !r.OK || r.SignedBy != signer || len(r.Files) != 1 {
		t.Errorf("JSON, note alone: got %+v, %+v, %v", got, r, err)
	}
}

func TestVerifyReleaseRejects(t *testing.T) {
	other, _ := tlog.NewSignerKey(releasefiles.KeyName, edkey.NewPrivate())
	foreign, _ := tlog.NewSignerKey("log.example/o/acme", edkey.NewPrivate())
	const amd64, arm64 = "aps_1.2.3_linux_amd64.tar.gz", "aps_1.2.3_linux_arm64.tar.gz"
	for name, c := range map[string]struct {
		change func(file func(name string) string)
		path   string // in the folder
		key    string // "": the release's
		status int
		report string
	}{
		"a changed byte": {func(file func(string) string) { writeText(t, file(amd64), "firsT") }, "", "", 1,
			"aps: not the release: " + amd64 + ": its SHA-256 is "},
		"a changed file that is not asked for": {func(file func(string) string) { writeText(t, file(amd64), "firsT") }, arm64, "", 0, ""},
		"a missing file": {func(file func(string) string) { _ = os.Remove(file(arm64)) }, "", "", 1,
			"aps: not the release: " + arm64 + ": missing"},
		"one missing file": {func(file func(string) string) { _ = os.Remove(file(arm64)) }, arm64, "", 1,
			"aps: not the release: " + arm64 + ": missing"},
		"a file that is not listed": {func(file func(string) string) { writeText(t, file("evil\x1b[2J"), "x") }, "", "", 1,
			"aps: not the release: evil?[2J: not on the list"},
		"one file that is not listed": {func(file func(string) string) { writeText(t, file("setup.exe"), "x") }, "setup.exe", "", 1,
			"aps: not the release: setup.exe: not on the list"},
		"an old file by a new name": {func(file func(string) string) { _ = os.Rename(file(amd64), file("aps_1.2.4_linux_amd64.tar.gz")) },
			"aps_1.2.4_linux_amd64.tar.gz", "", 1, "aps: not the release: aps_1.2.4_linux_amd64.tar.gz: not on the list"},
		"a changed list and its file": {func(file func(string) string) {
			writeText(t, file(amd64), "second")
			writeText(t, file(releasefiles.ListName), strings.Replace(releaseList, releaseList[:64], releaseList[95:159], 1))
		}, "", "", 1, "aps: not the release: SHA256SUMS is not the text of SHA256SUMS.note"},
		"a path in the list": {func(file func(string) string) {
			_ = os.Remove(file(releasefiles.NoteName))
			writeText(t, file(releasefiles.ListName), releaseList[:66]+"../"+amd64+"\n")
		}, "", "", 1, "aps: not the release: SHA256SUMS: line 1 is not a SHA-256 and a plain file name"},
		"no note": {func(file func(string) string) { _ = os.Remove(file(releasefiles.NoteName)) }, "", "", 2,
			"aps: can't tell: the release is not signed: there is no SHA256SUMS.note"},
		"no note and a changed byte": {func(file func(string) string) {
			_ = os.Remove(file(releasefiles.NoteName))
			writeText(t, file(amd64), "firsT")
		}, amd64, "", 1, "aps: not the release: " + amd64},
		"no list and no note": {func(file func(string) string) {
			_, _ = os.Remove(file(releasefiles.NoteName)), os.Remove(file(releasefiles.ListName))
		}, "", "", 2, "aps: can't tell: read release list: "},
		"a foreign note": {func(file func(string) string) {
			note, _ := other.SignNote(releaseList)
			writeText(t, file(releasefiles.NoteName), string(note.Bytes()))
		}, "", "", 2, "aps: can't tell: the release is signed by another key: " + releasefiles.KeyName + "+" + other.Verifier().Hash().String()},
		"another key":      {func(func(string) string) {}, "", other.Verifier().String(), 2, "aps: can't tell: the release is signed by another key"},
		"the key of a log": {func(func(string) string) {}, "", foreign.Verifier().String(), 2, "aps: --key: log.example/o/acme signs no releases"},
		"no key":           {func(func(string) string) {}, "", " ", 2, "aps: --key: "},
		"no such folder":   {func(func(string) string) {}, "none/" + amd64, "", 2, "aps: "},
	} {
		folder, key := writeRelease(t)
		c.change(func(name string) string { return filepath.Join(folder, name) })
		if c.key == "" {
			c.key = key.Verifier().String()
		}
		got := aps(t, "", "verify-release", filepath.Join(folder, c.path), "--key", c.key)
		if got.status != c.status || !strings.HasPrefix(got.report, c.report) {
			t.Errorf("%s: got %+v, want status %d, %q", name, got, c.status, c.report)
		}
	}
}

// Without a key nothing is proved, but damage is detected.
func TestVerifyReleaseWithoutKey(t *testing.T) {
	folder, _ := writeRelease(t)
	if got := aps(t, "", "verify-release", folder); got.status != 2 || !strings.Contains(got.report, "set --key") {
		t.Errorf("got %+v", got)
	}
	writeText(t, filepath.Join(folder, "aps_1.2.3_linux_arm64.tar.gz"), "damage")
	if got := aps(t, "", "verify-release", folder); got.status != 1 || !strings.Contains(got.out, "FAIL  aps_1.2.3_linux_arm64") {
		t.Errorf("got %+v", got)
	}
}
