package chromium

import (
	"os"
	"path/filepath"
	"testing"
)

// A port that is free at ::1 may be in use at 127.0.0.1. Then chromedriver exits and is started again.
func TestDriverIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "chromedriver")
	script := `#!/bin/sh
if mkdir "` + dir + `/seen" 2>/dev/null; then
	echo "IPv4 port not available. Exiting..."
	exit 1
fi
echo "ChromeDriver was started successfully on port 4711."
exec cat
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	driver, got := startDriver(t, program)
	defer func() {
		_ = driver.Process.Kill()
		_ = driver.Wait()
	}()
	if got != "http://127.0.0.1:4711" {
		t.Errorf("got %s", got)
	}
}
