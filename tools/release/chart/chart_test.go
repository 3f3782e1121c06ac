package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/tools/release/chart"
)

const tree = "../../.."

// Two packages of one version have the same bytes. Another version or another time changes them.
func TestWriteIsReproducible(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	packed := func(version string, at time.Time) string {
		dir := t.TempDir()
		if err := chart.Write(dir, tree, version, at); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "agentledger-"+version+".tgz"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	first := packed("1.2.3", at)
	if packed("1.2.3", at) != first {
		t.Error("two packages differ")
	}
	if packed("1.2.4", at) == first || packed("1.2.3", at.Add(time.Second)) == first {
		t.Error("two versions or two times have the same package")
	}
}

// A chart whose version is not a placeholder is rejected, and so is a chart without Chart.yaml.
func TestWriteRejects(t *testing.T) {
	for name, content := range map[string]string{
		"another version": "name: x\nversion: 1.0.0\nappVersion: \"0.0.0\"\n",
		"no appVersion":   "name: x\nversion: 0.0.0\n",
		"version twice":   "name: x\nversion: 0.0.0\nversion: 0.0.0\nappVersion: \"0.0.0\"\n",
	} {
		source := t.TempDir()
		folder := filepath.Join(source, chart.Folder)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := chart.Write(t.TempDir(), source, "1.2.3", time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "must match exactly one line") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := chart.Write(t.TempDir(), t.TempDir(), "1.2.3", time.Unix(0, 0)); err == nil {
		t.Error("no chart: got no error")
	}
}
