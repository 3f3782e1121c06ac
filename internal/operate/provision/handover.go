package provision

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
)

// FirstAgent is what the operator hands to the first agent of a new organization: the file of its private key, which
// only its owner can read and which never replaces another file, and the settings of aps, which contain the ingest
// key but not the private key. The ingest key is shown only once.
type FirstAgent struct {
	URL          string // of the service, as the agent reaches it
	Organization id.Organization
	Agent        id.Agent
	Key          id.Key
	IngestKey    string
	KeyFile      string
}

// CheckKeyFile returns an error if a file already exists at KeyFile. An empty KeyFile is valid.
func (a FirstAgent) CheckKeyFile() error {
	if a.KeyFile == "" {
		return nil
	}
	_, err := os.Lstat(a.KeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("key file: %w", err)
	}
	return fmt.Errorf("key file: %s already exists: choose another one with --key-file", a.KeyFile)
}

// WriteKeyFile writes the key file in the format that aps reads.
func (a FirstAgent) WriteKeyFile(private edkey.Private) error {
	seed := private.Seed()
	text := base64.StdEncoding.EncodeToString(seed[:]) + "\n"
	if err := durable.CreateFile(a.KeyFile, []byte(text)); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

// Exports returns the settings of aps as export commands for a shell.
func (a FirstAgent) Exports() string {
	if absolute, err := filepath.Abs(a.KeyFile); err == nil {
		a.KeyFile = absolute
	}
	var b strings.Builder
	for _, setting := range []struct{ name, value string }{
		{"APS_URL", a.URL}, {"APS_ORG", a.Organization.String()}, {"APS_AGENT", string(a.Agent)},
		{"APS_KEY_ID", string(a.Key)}, {"APS_KEY_FILE", a.KeyFile}, {"APS_TOKEN", a.IngestKey},
	} {
		fmt.Fprintf(&b, "export %s=%s\n", setting.name, quoteForShell(setting.value))
	}
	return b.String()
}

// quoteForShell quotes s as a word for a POSIX shell.
func quoteForShell(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
