package page

import (
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSplitText(t *testing.T) {
	type name string
	for text, want := range map[any]string{
		"plain":               "plain",
		name("agent"):         "agent",
		"a\u202egnp.exe":      "a[U+202E]gnp.exe",
		"\u2066x\u2069":       "[U+2066]x[U+2069]",
		"line\u2028two\u0007": "line[U+2028]two[U+0007]",
		"می\u200cخواهم 👩\u200d🚀\n\t": "می\u200cخواهم 👩\u200d🚀\n\t",
	} {
		var got strings.Builder
		for _, p := range splitText(text) {
			if got.WriteString(p.Text); p.Code != "" {
				got.WriteString("[" + p.Code + "]")
			}
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", text, got.String(), want)
		}
	}
	if got := splitText([]byte("{}")); len(got) != 1 || got[0].Text != "{}" {
		t.Errorf("bytes: got %+v", got)
	}
	if got := showPlain("a\u202eb"); got != "a\ufffdb" {
		t.Errorf("plain: got %q", got)
	}
}

// Templates are parsed on first use, so a template that cannot be parsed must fail here.
func TestTemplates(t *testing.T) {
	files, err := filepath.Glob("../*/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("../templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	if files = append(files, own...); len(files) < 60 {
		t.Errorf("found %d templates, want 60 or more", len(files))
	}
	for _, file := range files {
		if _, err := template.Must(frame().Clone()).ParseFiles(file); err != nil {
			t.Error(err)
		}
	}
}

// A template that isolates a text itself does not show invisible characters. The template "text" does both.
func TestTemplatesShowTextsByOneTemplate(t *testing.T) {
	raw := regexp.MustCompile(`<bdi>\{\{|<title>\{\{\.Title`)
	found := 0
	err := filepath.WalkDir("..", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" || strings.Contains(name, "node_modules") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found++
		for line := range strings.Lines(string(text)) {
			if raw.MatchString(line) && !strings.HasPrefix(line, `{{define "text"}}`) {
				t.Errorf("%s: %s", name, line)
			}
		}
		return nil
	})
	if err != nil || found < 40 {
		t.Fatalf("read %d templates: %v", found, err)
	}
}
