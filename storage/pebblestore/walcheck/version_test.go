package walcheck_test

import (
	"os"
	"regexp"
	"testing"
)

// readVersion is the version of Pebble whose source was read for what package walcheck relies on.
const readVersion = "v2.1.7"

// The order in which Pebble writes is not documented, so a new version may break the argument in the package comment
// without breaking the build.
func TestPebbleVersion(t *testing.T) {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^.*github\.com/cockroachdb/pebble/v2 .*$`).FindAllString(string(text), -1)
	want := regexp.MustCompile(`^(require)?\s*github\.com/cockroachdb/pebble/v2 ` + regexp.QuoteMeta(readVersion) + `$`)
	if len(lines) != 1 || !want.MatchString(lines[0]) {
		t.Errorf("go.mod: got %q, want Pebble %s: read each point of \"What it relies on\" in the package comment again in "+
			"the source of the new version (record/log_writer.go, record/record.go, version_set.go, "+
			"internal/manifest/version_edit.go, wal/standalone_manager.go), then change readVersion", lines, readVersion)
	}
}
