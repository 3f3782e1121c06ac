//go:build unix

package secret_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/secret"
)

// A group that this process is not a member of must not read a secret, and each of its own groups may.
func TestAccessOfGroups(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	groups = append(groups, os.Getegid())
	for _, group := range groups {
		path := write(t, "s", 0o440)
		if err := os.Chown(path, -1, group); err != nil {
			t.Fatal(err)
		}
		if _, err := secret.ReadFile(path); err != nil {
			t.Errorf("own group %d: %v", group, err)
		}
	}
	const foreign = 54321
	if os.Geteuid() != 0 || slices.Contains(groups, foreign) {
		t.Skip("only root can give a file to another group")
	}
	path := write(t, "s", 0o440)
	if err := os.Chown(path, -1, foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.ReadFile(path); err == nil || !strings.Contains(err.Error(), "not a group of this process") {
		t.Errorf("another group: got %v", err)
	}
}
