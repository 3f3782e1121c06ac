package help

import (
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// repositoryURL is where the documents are that the service does not serve.
const repositoryURL = "https://github.com/agentledger/agentledger/blob/main/"

// Runbooks states what to do about each alert.
type Runbooks struct {
	Intro    template.HTML
	Alerts   []Alert
	Sections []Runbook // what the alerts refer to, directly or indirectly, in the order of the document
}

// Alert is an alert of deploy/alerts.yaml.
type Alert struct {
	Name     string
	Severity string        // page or ticket
	Do       template.HTML // what to do
}

// Runbook is a section of docs/operations.md.
type Runbook struct {
	ID    string
	Main  bool // has a heading of the second level, otherwise of the third
	Title template.HTML
	Text  template.HTML
}

var (
	alertRow = regexp.MustCompile("(?m)^\\| `(Agentledger\\w+)` \\| (\\w+) \\| (.*) \\|$")
	ownLink  = regexp.MustCompile(`\]\(#([^)]+)\)`)
)

// ReadRunbooks returns the alerts of docs/operations.md and its sections that they refer to.
func ReadRunbooks(document string) *Runbooks {
	sections := splitSections(document)
	find := func(id string) int {
		return slices.IndexFunc(sections, func(s section) bool { return s.ID == id })
	}
	r := new(Runbooks)
	alerts := find("alerts")
	if alerts < 0 {
		return r
	}
	shown := make([]bool, len(sections))
	shown[alerts] = true // its links lead to the alerts
	var include func(text string)
	include = func(text string) {
		for _, found := range ownLink.FindAllStringSubmatch(text, -1) {
			at := find(found[1])
			if at < 0 || shown[at] {
				continue
			}
			for end := at; end < len(sections) && (end == at || sections[end].Level > sections[at].Level); end++ {
				if !shown[end] {
					shown[end] = true
					include(sections[end].text)
				}
			}
		}
	}
	intro, _, _ := strings.Cut(sections[alerts].text, "\n| Alert |")
	include(sections[alerts].text)
	r.Intro = renderMarkdown(intro, documentURL)
	for _, found := range alertRow.FindAllStringSubmatch(sections[alerts].text, -1) {
		r.Alerts = append(r.Alerts, Alert{Name: found[1], Severity: found[2], Do: renderInline(found[3], documentURL)})
	}
	for i, s := range sections {
		if shown[i] && i != alerts {
			r.Sections = append(r.Sections, Runbook{ID: s.ID, Main: s.Level == 2, Title: renderInline(s.Title, documentURL),
				Text: renderMarkdown(s.text, documentURL)})
		}
	}
	return r
}

// documentURL returns the address of a link of a document in docs. Sections of the same document are on the same page.
func documentURL(target string) string {
	switch {
	case strings.HasPrefix(target, "#"), strings.Contains(target, "://"):
		return target
	case strings.HasPrefix(target, "../"):
		return repositoryURL + strings.TrimPrefix(target, "../")
	}
	return repositoryURL + "docs/" + target
}
