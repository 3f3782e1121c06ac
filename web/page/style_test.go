package page

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

// maxStyle is the maximum size of the style sheet in bytes: something new replaces something old.
const maxStyle = 16384

// templates returns the texts of all templates by their paths.
func templateTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	err := filepath.WalkDir("..", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" || strings.Contains(name, "node_modules") {
			return err
		}
		text, err := os.ReadFile(name)
		texts[name] = string(text)
		return err
	})
	if err != nil || len(texts) < 60 {
		t.Fatalf("read %d templates: %v", len(texts), err)
	}
	return texts
}

// The style sheet is small, and every class of a template is a class of the style sheet or a name for scripts.
func TestStyle(t *testing.T) {
	style, err := os.ReadFile("assets/agentledger.css")
	if err != nil {
		t.Fatal(err)
	}
	if len(style) > maxStyle {
		t.Errorf("the style sheet has %d bytes, want at most %d", len(style), maxStyle)
	}
	var known []string
	for _, found := range regexp.MustCompile(`\.([a-zA-Z][\w-]*)`).FindAllSubmatch(style, -1) {
		known = append(known, string(found[1]))
	}
	scripts := []string{"live", "numbers", "verdict", "snippet", "members", "facts", "inline", "votes", "codes", "name"}
	branch := regexp.MustCompile(`\{\{[^}]*\}\}`)
	for name, text := range templateTexts(t) {
		for _, found := range regexp.MustCompile(`class="([^"{]*(?:\{\{[^}]*\}\}[^"{]*)*)"`).FindAllStringSubmatch(text, -1) {
			for class := range strings.FieldsSeq(branch.ReplaceAllString(found[1], " ")) {
				if class == "o-" || class == "is-" { // a branch follows
					continue
				}
				if !slices.Contains(known, class) && !slices.Contains(known, "o-"+class) && !slices.Contains(known, "is-"+class) && !slices.Contains(scripts, class) {
					t.Errorf("%s: no style for the class %q", name, class)
				}
			}
		}
	}
}

// A template shows an identifier only where there is no name: on the page of the object itself, and once when it is made.
func TestTemplatesShowNames(t *testing.T) {
	shown := regexp.MustCompile(`\{\{(?:template "text" )?\$?\.?[\w.]*\.(Agent|AgentID|KeyID|IngestKey|PolicyID|CreatedBy|AskedBy|ChangedBy|WrittenBy|UpdatedBy|EndpointID|AccountID|MembershipID)\}\}`)
	own := []string{"agent.html", "key.html", "ingestkey.html", "policy.html", "member.html", "webhook.html", "newagent.html", "newkey.html",
		"founded.html", "agentparts.html", "start.html", "event.html"}
	attribute := regexp.MustCompile(`="[^"]*"`)
	for name, text := range templateTexts(t) {
		if slices.Contains(own, filepath.Base(name)) {
			continue
		}
		for line := range strings.Lines(text) {
			if found := shown.FindString(attribute.ReplaceAllString(line, "")); found != "" {
				t.Errorf("%s shows %s: %s", name, found, line)
			}
		}
	}
}

func TestShortTime(t *testing.T) {
	now := time.Date(2026, 11, 29, 6, 17, 18, 0, time.UTC)
	for at, want := range map[string]string{
		"2026-11-29T00:00:01.999Z": "00:00:01",
		"2026-11-28T23:59:59.999Z": "28 Nov 23:59",
		"2026-01-01T00:00:00.000Z": "1 Jan 00:00",
		"2025-12-31T23:59:59.999Z": "31 Dec 2025",
		"12345":                    "12345",
	} {
		if got := shortTime(at, now); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
	if got := exactTime(id.InstantOf(now)); got != "2026-11-29 06:17:18.000 UTC" {
		t.Errorf("exact: got %q", got)
	}
}

func TestInitials(t *testing.T) {
	for name, want := range map[string]string{
		"Maria Santos": "MS", "ada@northwind.example": "A", "Łukasz Wróbel-Święcicki": "ŁW", "Northwind": "N", "": "", "  ": "",
		"Release team 🚀": "R🚀", "מיכל כהן": "מכ", "ann.lee@red.example": "AL",
	} {
		if got := initials(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestGroupDigits(t *testing.T) {
	n := uint64(1204332)
	for want, given := range map[string]any{"0": (*uint64)(nil), "999": 999, "1,000": 1000, "1,204,332": &n, "10,000": int64(10000)} {
		if got := groupDigits(given); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A refusal is shown at the field that it names.
func TestErrorOf(t *testing.T) {
	for _, tc := range []struct{ field, problem, want string }{
		{"retention_days", "retention_days must be a whole number", "Must be a whole number"},
		{"retention", "retention_days must be a whole number", ""},
		{"name", "", ""},
		{"name", "The name is taken", ""},
	} {
		if got := errorOf(tc.field, tc.problem); got != tc.want {
			t.Errorf("%q of %q: got %q, want %q", tc.field, tc.problem, got, tc.want)
		}
	}
}
