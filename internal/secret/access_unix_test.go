//go:build unix

package secret_test

import (
	"os"
	"testing"

	"github.com/agentledger/agentledger/internal/secret"
)

// Each group of this process may read a secret.
func TestAccessOfOwnGroups(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range append(groups, os.Getegid()) {
		path := write(t, "s", 0o440)
		if err := os.Chown(path, -1, group); err != nil {
			t.Fatal(err)
		}
		if _, err := secret.ReadFile(path); err != nil {
			t.Errorf("own group %d: %v", group, err)
		}
	}
}
