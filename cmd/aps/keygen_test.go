package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

func TestKeygen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.key")
	got := aps(t, "", "keygen", "--out", file, "--json")
	var out keyOutput
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.status != 0 || out.PrivateKey != "" || out.File != file {
		t.Fatalf("got %+v, %v", got, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	text := load(t, file)
	if strings.Contains(got.out, strings.TrimSpace(text)) {
		t.Error("the private key was printed")
	}
	if again := aps(t, "", "keygen", "--out", file); again.status != 2 || load(t, file) != text {
		t.Errorf("replaced: %+v", again)
	}
	from := aps(t, "", "keygen", "--from", file, "--json")
	want := strings.Replace(got.out, `"file":"`+file+`",`, "", 1)
	if from.status != 0 || from.out != want {
		t.Errorf("got %+v, want %s", from, want)
	}
}

func TestKeygenPrints(t *testing.T) {
	got := aps(t, "", "keygen")
	if got.status != 0 || !strings.HasPrefix(got.out, "private key  ") || strings.Count(got.out, "\n") != 4 {
		t.Errorf("got %+v", got)
	}
	o := fakeservice.Start(t, 1).Organization(0)
	flags := as(t, o)
	proof := aps(t, "", append([]string{"keygen", "--proof", "--from", flags[7]}, flags[:6]...)...)
	if proof.status != 0 || !strings.Contains(proof.out, "\nproof        ") || strings.Contains(proof.out, o.Seed) {
		t.Errorf("got %+v", proof)
	}
	unnamed := aps(t, "", append([]string{"keygen", "--proof", "--from", flags[7]}, flags[:4]...)...)
	if unnamed.status != 0 || !strings.Contains(unnamed.out, "\nproof        ") || unnamed.out == proof.out {
		t.Errorf("without --key-id: got %+v", unnamed)
	}
	for i := 0; i < 4; i += 2 {
		short := append(append([]string{"keygen", "--proof"}, flags[:i]...), flags[i+2:6]...)
		if got := aps(t, "", short...); got.status != 2 || !strings.Contains(got.report, "set "+flags[i]) {
			t.Errorf("without %s: got %+v", flags[i], got)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := aps(t, "", "version"); got.status != 0 || !strings.Contains(got.out, "2026-05-18") {
		t.Errorf("got %+v", got)
	}
	if got := aps(t, "", "version", "--json"); got.status != 0 || !strings.Contains(got.out, `"service_version":"2026-05-18"`) {
		t.Errorf("got %+v", got)
	}
}
