package help

import (
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// repositoryURL is where the documents are that the service does not serve.
const repositoryURL = "https://github.com/agentledger/agentledger/blob/main/"

// Runbooks is a page of docs/runbooks: the alerts of one kind.
type Runbooks struct {
	ID     string // the name of its file without .md
	Title  template.HTML
	Intro  template.HTML
	Alerts []Alert
}

// Alert is an alert of deploy/alerts.yaml.
type Alert struct {
	Name     string
	Severity string        // page or ticket
	Symptom  template.HTML // what happens
	Steps    template.HTML // what to do
}

// alertText is the text of an alert: its severity, the symptom, an empty line, and numbered steps.
var alertText = regexp.MustCompile(`(?s)^\s*\*\*(Page|Ticket)\.\*\* (.+?)\n\n(1\. .+)$`)

// ReadRunbooks returns the pages of docs/runbooks in the order of their files' names. It returns an error if a section of a
// page is not the runbook of an alert, or if a link leads to the runbook of an alert that has none.
func ReadRunbooks(documents fs.FS) ([]Runbooks, error) {
	names, err := fs.Glob(documents, "runbooks/*.md")
	if err != nil {
		return nil, fmt.Errorf("list runbooks: %w", err)
	}
	files, alerts := make([][]section, len(names)), make(map[string]string)
	for i, name := range names {
		text, err := fs.ReadFile(documents, name)
		if err != nil {
			return nil, fmt.Errorf("read runbooks: %w", err)
		}
		files[i] = splitSections(string(text))
		for _, s := range files[i] {
			if s.Level > 1 {
				alerts[s.ID] = s.Title
			}
		}
	}
	pages := make([]Runbooks, len(names))
	for i, name := range names {
		if pages[i], err = readPage(strings.TrimSuffix(path.Base(name), ".md"), files[i], alerts); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return pages, nil
}

// readPage returns the page with the sections. alerts are the names of all alerts, by the fragments that lead to them.
func readPage(id string, sections []section, alerts map[string]string) (Runbooks, error) {
	p := Runbooks{ID: id}
	for _, s := range sections {
		for _, link := range alertLink.FindAllStringSubmatch(s.text, -1) {
			if alerts[link[1]] == "" {
				return Runbooks{}, fmt.Errorf("section %q links to #%s, which is not a runbook", s.Title, link[1])
			}
		}
		url := func(target string) string { return runbookURL(target, alerts) }
		if s.Level == 1 {
			p.Title, p.Intro = renderInline(s.Title, url), renderMarkdown(s.text, url)
			continue
		}
		found := alertText.FindStringSubmatch(s.text)
		if s.Level != 2 || found == nil {
			return Runbooks{}, fmt.Errorf("section %q is not a runbook", s.Title)
		}
		p.Alerts = append(p.Alerts, Alert{Name: s.Title, Severity: strings.ToLower(found[1]),
			Symptom: renderMarkdown(found[2], url), Steps: renderMarkdown(found[3], url)})
	}
	return p, nil
}

// alertLink matches the target of a link to a runbook, of the same document or of another one in docs/runbooks.
var alertLink = regexp.MustCompile(`\]\((?:[a-z]+\.md)?#([^)]+)\)`)

// runbookURL returns the address of a link of a document in docs/runbooks. All runbooks are on one page, and the anchor of
// each is the name of its alert.
func runbookURL(target string, alerts map[string]string) string {
	_, fragment, _ := strings.Cut(target, "#")
	switch name := alerts[fragment]; {
	case name != "":
		return "#" + name
	case strings.Contains(target, "://"):
		return target
	}
	return repositoryURL + path.Join("docs/runbooks", target)
}
