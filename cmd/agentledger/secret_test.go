package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

// A platform secret may have one line end after it, in the environment and in a file. A secret that no caller could
// send in a header is rejected at the start, and the error does not contain it.
func TestPlatformSecretForms(t *testing.T) {
	const good = "a platform secret of 33 characters"
	load := func(t *testing.T, text string, mode fs.FileMode, inFile bool) (string, error) {
		t.Helper()
		c := config.Serve{Store: config.Store{Data: t.TempDir()}}
		if !inFile {
			t.Setenv(config.PlatformSecretVariable, text)
		} else {
			t.Setenv(config.PlatformSecretVariable, "")
			c.PlatformSecretFile = filepath.Join(c.Data, "mounted")
			if err := os.WriteFile(c.PlatformSecretFile, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(c.PlatformSecretFile, mode); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := loadPlatformSecret(c)
		return got, err
	}
	for _, inFile := range []bool{true, false} {
		for _, end := range []string{"", "\n", "\r\n"} {
			if got, err := load(t, good+end, 0o440, inFile); got != good || err != nil {
				t.Errorf("in a file %v, ending in %q: got %q, %v", inFile, end, got, err)
			}
		}
		for text, want := range map[string]string{
			good + "\n\n": "contains a line end", good + "\r\n\r\n": "contains a line end", "\n" + good: "contains a line end",
			" " + good: "white space", good + "\t": "white space", good + "\x01x": "control character", "short": "shorter than 16",
		} {
			_, err := load(t, text, 0o600, inFile)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), good) {
				t.Errorf("in a file %v, %q: got %v, want %q", inFile, text, err, want)
			}
		}
	}
	if _, err := load(t, good, 0o644, true); err == nil || !strings.Contains(err.Error(), "other users have access") {
		t.Errorf("a file of mode 0644: got %v", err)
	}
}
