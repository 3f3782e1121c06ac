package houserules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A page for operators has at most 1,500 words, and its first command or settings are within its first 100 words.
func TestPagesForOperators(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/operate/*.md")
	if err != nil || len(pages) < 9 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.Fields(string(text))); n < 400 || n > 1500 {
			t.Errorf("%s has %d words", page, n)
		}
		before, _, found := strings.Cut(string(text), "\n```")
		if n := len(strings.Fields(before)); !found || n > 100 {
			t.Errorf("%s has %d words before its first command", page, n)
		}
	}
}
