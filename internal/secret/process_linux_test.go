package secret

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const inProtected = "AGENTLEDGER_TEST_PROTECTED"

// TestMain is also a protected program that starts another one, which reads the environment and the memory of the first.
func TestMain(m *testing.M) {
	switch os.Getenv(inProtected) {
	case "":
		os.Exit(m.Run())
	case "yes":
		ProtectProcess()
	}
	const read = `cat /proc/$PPID/environ; head -c 1 /proc/$PPID/maps >/dev/null && echo; echo maps: $?`
	child := exec.Command("/bin/sh", "-c", read)
	child.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := child.CombinedOutput() // cat fails
	fmt.Printf("%s", out)
	os.Exit(0)
}

func TestProtectProcess(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "protected-*") // t.TempDir is below a folder that another user can't enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copied := filepath.Join(dir, "program")
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for protected, readable := range map[string]bool{"no": true, "yes": false} {
		cmd := exec.Command(copied)
		cmd.Env = []string{inProtected + "=" + protected, "APS_TOKEN=a-secret"}
		cmd.Dir = "/"
		if os.Geteuid() == 0 { // root can read all
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.Contains(string(out), "a-secret"); got != readable {
			t.Errorf("protected: %s: the environment is read: %v\n%q", protected, got, out)
		}
		if got := strings.Contains(string(out), "maps: 0"); got != readable {
			t.Errorf("protected: %s: the memory map is read: %v\n%q", protected, got, out)
		}
	}
}
