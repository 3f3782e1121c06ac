package installcheck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tlog"
)

// verifyRelease checks a package of the release with the installed aps, under its own key, because the release itself
// may be unsigned. Then it changes a byte, which aps must detect.
func (c *check) verifyRelease(ctx context.Context) error {
	key, err := tlog.NewSignerKey(releasefiles.KeyName, edkey.NewPrivate())
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(c.dir, releasefiles.ListName))
	if err != nil {
		return err
	}
	note, err := key.SignNote(string(list))
	if err != nil {
		return err
	}
	content, err := os.ReadFile(c.packages[0])
	if err != nil {
		return err
	}
	folder := filepath.Join(c.work, "downloads")
	file := filepath.Join(folder, filepath.Base(c.packages[0]))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, releasefiles.NoteName), note.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	vkey := key.Verifier().String()
	if _, err := runCommand(ctx, "/usr/bin/aps", "verify-release", file, "--key", vkey); err != nil {
		return err
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	said, err := runCommand(ctx, "/usr/bin/aps", "verify-release", file, "--key", vkey)
	if err == nil || !strings.Contains(err.Error(), "exit status 1: ") {
		return fmt.Errorf("aps accepted a changed file: %s, %v", said, err)
	}
	return nil
}
