package houserules_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const noLimit = 1 << 30

// pages are the documents of the project by the pattern of their path, and the words that each may have. The last match counts.
var pages = []struct {
	pattern string
	words   int
}{
	{"README.md", 1000},
	{"SECURITY.md", 1200},
	{"CONTRIBUTING.md", 1000},
	{"CHANGELOG.md", noLimit},
	{"docs/*.md", 1600},
	{"docs/performance.md", noLimit},
	{"docs/quickstart/*.md", 600},
	{"docs/quickstart/operator.md", 900},
	{"docs/guides/*.md", 1600},
	{"docs/policies/*.md", 1600},
	{"docs/audit/*.md", 1500},
	{"docs/spec/*.md", noLimit},
	{"docs/operate/*.md", 1600},
	{"docs/runbooks/*.md", noLimit}, // 200 for each alert, which a test of the runbooks holds
	{"docs/reference/*.md", noLimit},
	{"docs/internals/*.md", 2500},
	{"clients/*/README.md", 1600},
	{"client/README.md", 1600},
	{"examples/README.md", 1600},
}

// Each page is within its words, and a reader reaches it from README.md or docs/README.md in two links.
func TestPages(t *testing.T) {
	const root = "../../.."
	texts := make(map[string]string)
	for _, p := range pages {
		names, err := filepath.Glob(filepath.Join(root, p.pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(filepath.ToSlash(name), root+"/")] = string(text)
		}
	}
	for name, text := range texts {
		limit := 0
		for _, p := range pages {
			if matched, _ := path.Match(p.pattern, name); matched {
				limit = p.words
			}
		}
		if words := len(strings.Fields(text)); words > limit {
			t.Errorf("%s has %d words, want at most %d", name, words, limit)
		}
	}
	reached := map[string]bool{"README.md": true, "docs/README.md": true}
	for range 2 {
		var found []string
		for name := range reached {
			for _, m := range documentLink.FindAllStringSubmatch(codeFence.ReplaceAllString(texts[name], ""), -1) {
				file, _, _ := strings.Cut(m[1], "#")
				found = append(found, path.Join(path.Dir(name), file), strings.TrimPrefix(file, repository))
			}
		}
		for _, name := range found {
			reached[name] = true
		}
	}
	for name := range texts {
		if !reached[name] {
			t.Errorf("%s is more than two links away from README.md and docs/README.md", name)
		}
	}
}
