//go:build unix

package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]string{
		0o600: "", 0o644: "", 0o664: "", 0o444: "", 0o440: "",
		0o646: "set it to 0644", 0o666: "set it to 0664", 0o777: "set it to 0775", 0o602: "set it to 0600",
	} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		text, err := ReadSettings(file)
		if refused == "" && (err != nil || string(text) != "text") {
			t.Errorf("%o: got %q, %v", mode, text, err)
		}
		if refused != "" && (err == nil || !strings.HasSuffix(err.Error(), refused) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%o: got %v", mode, err)
		}
	}
	if _, err := ReadSettings(os.DevNull); err != nil {
		t.Errorf("a device: %v", err)
	}
	if _, err := ReadSettings(file + ".none"); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}
