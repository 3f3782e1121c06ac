//go:build unix

package childprocess

import (
	"io"
	"os"
	"strings"
	"testing"
)

// A program runs as another user if this program may change users, and otherwise not at all.
func TestUser(t *testing.T) {
	p, err := Command{Args: []string{"/bin/sh", "-c", `id -un; echo "$HOME"`}, Env: map[string]string{"HOME": "/chosen"}, Dir: "/", User: "nobody"}.Start()
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("started as another user without the privilege")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if out, err := io.ReadAll(p.Output); err != nil || strings.Join(strings.Fields(string(out)), " ") != "nobody /chosen" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := (Command{Args: []string{"true"}, User: "no-such-user"}).Start(); err == nil {
		t.Error("started as a user that does not exist")
	}
}
