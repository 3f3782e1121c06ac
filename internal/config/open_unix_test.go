//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Anybody who can change the settings decides where the service listens and whom it trusts.
func TestOpenSettingsFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"public-url": "http://log.example"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o644: false, 0o664: false, 0o666: true, 0o602: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := parse(t, "--config", file)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "every user can change it") {
			t.Errorf("%o: got %v", mode, err)
		}
	}
}
