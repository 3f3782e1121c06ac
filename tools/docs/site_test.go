package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference  = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identifier = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	codeBlock  = regexp.MustCompile(`(?s)<pre>.*?</pre>`)
)

// Each link of each page leads to a file and a fragment that exist, no page loads anything from another host, and the search
// finds each page.
func TestSite(t *testing.T) {
	out := t.TempDir()
	pages, err := build("../..", out)
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 {
		t.Errorf("got %d pages", pages)
	}
	texts, anchors := make(map[string]string), make(map[string]bool)
	err = filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err = filepath.Rel(out, name)
		if err != nil {
			return err
		}
		text := ""
		if strings.HasSuffix(name, ".html") {
			content, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				return err
			}
			text = codeBlock.ReplaceAllString(string(content), "")
			for _, m := range identifier.FindAllStringSubmatch(text, -1) {
				anchors[name+"#"+m[1]] = true
			}
		}
		texts[filepath.ToSlash(name)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for name, text := range texts {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target, remote := m[1], regexp.MustCompile(`^([a-z]+:|//)`).MatchString(m[1])
			if remote && (strings.HasPrefix(m[0], "src") || strings.Contains(text, `<link rel="stylesheet" `+m[0])) {
				t.Errorf("%s loads %s", name, target)
			}
			if remote {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, ok := texts[to]; !ok {
				t.Errorf("%s links to %s, which does not exist", name, target)
			} else if fragment != "" && !anchors[to+"#"+fragment] {
				t.Errorf("%s links to %s, which has no such heading", name, target)
			}
		}
	}
	if links < 1000 {
		t.Errorf("found %d links", links)
	}
	index, err := os.ReadFile(filepath.Join(out, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []section
	if err := json.Unmarshal(index[len("var searchIndex = "):len(index)-2], &sections); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, s := range sections {
		file, fragment, _ := strings.Cut(s.Address, "#")
		found[file] = true
		if !anchors[file+"#"+fragment] {
			t.Errorf("the search leads to %s, which does not exist", s.Address)
		}
	}
	for name, text := range texts {
		if text != "" && !found[name] {
			t.Errorf("the search does not find %s", name)
		}
	}
}

func TestSlugs(t *testing.T) {
	s := newSlugs()
	for _, tt := range []struct{ title, want string }{
		{"Start", "start"}, {"Start", "start-1"}, {"POST /v1/ingest/events", "post-v1ingestevents"}, {"Who `may` [vote](x.md)?", "who-may-vote"},
		{"a_b – c", "a_b--c"},
	} {
		if got := string(s.Generate([]byte(tt.title), 0)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.title, got, tt.want)
		}
	}
}
