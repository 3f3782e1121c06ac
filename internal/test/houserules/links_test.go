package houserules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	documentLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+?)\s*$`)
	codeFence    = regexp.MustCompile("(?ms)^```.*?^```")
	notInSlug    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	namedAnchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// repository begins the links of documents that are published without the repository.
const repository = "https://github.com/agentledger/agentledger/blob/main/"

// documents returns the Markdown files for readers of the project, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "client/README.md", "clients/*/README.md", "testdata/*/*.md", "deploy/*.md"} {
		names, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = codeFence.ReplaceAllString(string(text), "")
		}
	}
	return texts
}

// anchors returns the fragments by which GitHub and other renderers link to the headings of a document.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := strings.ToLower(linkText.ReplaceAllString(m[1], "$1"))
		found[strings.ReplaceAll(notInSlug.ReplaceAllString(title, ""), " ", "-")] = true
	}
	for _, m := range namedAnchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// Links between documents lead to files and headings that exist, and docs/README.md lists each document.
func TestLinksOfDocuments(t *testing.T) {
	texts, listed := documents(t), make(map[string]bool)
	for name, text := range texts {
		for _, m := range documentLink.FindAllStringSubmatch(text, -1) {
			file, fragment, _ := strings.Cut(m[1], "#")
			inRepository, absolute := strings.CutPrefix(file, repository)
			target := name
			switch {
			case absolute:
				target = filepath.Join("../../..", inRepository)
			case strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:"):
				continue
			case file != "":
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if other, ok := texts[target]; ok && fragment != "" && !anchors(other)[fragment] {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
			if name == "../../../docs/README.md" {
				listed[target] = true
			}
		}
	}
	for name := range texts {
		folder, file := filepath.Split(name)
		if slices.Contains([]string{"../../../docs/", "../../../docs/guides/", "../../../docs/operate/", "../../../docs/runbooks/"}, folder) &&
			file != "README.md" && !listed[name] {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}
