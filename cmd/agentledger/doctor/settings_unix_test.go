//go:build unix

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

// Only root and this user may be able to change files of settings.
func TestSettingsFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy")
	if err := os.WriteFile(file, []byte("quorum none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, folder fs.FileMode
		want         []string
	}{
		"private":                {0o600, 0o700, nil},
		"readable":               {0o644, 0o755, nil},
		"open":                   {0o666, 0o755, []string{"attention: so every user can change it"}},
		"in an open folder":      {0o644, 0o777, []string{"attention: every user can replace"}},
		"in a folder as of /tmp": {0o644, 0o777 | fs.ModeSticky, nil},
		"open to its group":      {0o664, 0o755, []string{"advice: the group of"}},
	} {
		if err := errors.Join(os.Chmod(file, tc.file), os.Chmod(dir, tc.folder)); err != nil {
			t.Fatal(err)
		}
		want(t, name, checkSettingsFiles(config.Serve{}, file), tc.want...)
		c := config.Serve{}
		c.WitnessPolicyFile = file
		want(t, name, checkSettingsFiles(c, ""), tc.want...)
	}
}
