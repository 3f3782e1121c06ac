package docpage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/docpage"
	"github.com/agentledger/agentledger/web/help"
)

// maxRepeated is how many calls may repeat the description of a refusal before it is listed once for all calls.
const maxRepeated = 5

// The reference of the HTTP interface has each call of the OpenAPI document, as the service's own pages show it, with the
// details that those leave out.
func TestHTTPReference(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "internal/http/edge/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := help.ReadReference(string(document))
	if err != nil {
		t.Fatal(err)
	}
	repeated := make(map[string]int) // by status and description
	for _, a := range r.Areas {
		for _, c := range a.Calls {
			for _, refusal := range c.Refusals {
				repeated[refusal.Status+" "+refusal.Description]++
			}
		}
	}
	var b strings.Builder
	b.WriteString("# HTTP API, version " + r.Version + "\n\n```sh\ncurl http://127.0.0.1:8080/openapi.json\n```\n\n" +
		"This page is generated from that document, which the main listener serves. Start with [the guide](../api.md). [Errors](errors.md) has all codes.\n\n")
	for _, a := range r.Areas {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", a.Name, a.Name, docpage.Cell(a.Description))
	}
	b.WriteString("\n## Rules\n\n" + r.Details + "\n\n#### Common refusals\n\n| Status | |\n|---|---|\n")
	var common []string
	for text, calls := range repeated {
		if calls > maxRepeated {
			common = append(common, text)
		}
	}
	slices.Sort(common)
	for _, text := range common {
		fmt.Fprintf(&b, "| %s | %s |\n", text[:3], docpage.Cell(text[4:]))
	}
	described := make(map[string]bool)
	for _, a := range r.Areas {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", a.Name, a.Description)
		paragraphs(&b, a.Details)
		for _, c := range a.Calls {
			writeCall(&b, c, repeated)
		}
		for _, s := range a.Schemas {
			if described[s.Name] {
				continue
			}
			described[s.Name] = true
			fmt.Fprintf(&b, "\n#### Document %s\n", s.Name)
			paragraphs(&b, s.Description)
			if len(s.Type) > 0 {
				fmt.Fprintf(&b, "\n%s\n", terms(s.Type))
			}
			writeMembers(&b, s.Members)
		}
	}
	docpage.Check(t, root, "http-api", b.String())
}

func paragraphs(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString("\n" + text + "\n")
	}
}

func writeCall(b *strings.Builder, c *help.Call, repeated map[string]int) {
	credential := "no credential"
	if len(c.Credentials) > 0 {
		slices.Sort(c.Credentials)
		credential = strings.Join(c.Credentials, " or ")
	}
	fmt.Fprintf(b, "\n### %s %s\n\n%s (%s).", c.Method, c.Path, strings.TrimSuffix(c.Summary, "."), credential)
	if len(c.Also) > 0 {
		var methods []string
		for _, also := range c.Also {
			methods = append(methods, also.Method)
		}
		fmt.Fprintf(b, " Also %s.", strings.Join(methods, ", "))
	}
	b.WriteString("\n")
	paragraphs(b, c.Description)
	paragraphs(b, c.Details)
	if len(c.Parameters) > 0 {
		b.WriteString("\n| Parameter | In | Type | |\n|---|---|---|---|\n")
		for _, p := range c.Parameters {
			fmt.Fprintf(b, "| `%s`%s | %s | %s | %s |\n", p.Name, required(p.Required), p.In, terms(p.Type), docpage.Cell(p.Description))
		}
	}
	for _, body := range c.Body {
		optional := ""
		if c.BodyOptional {
			optional = ", optional"
		}
		fmt.Fprintf(b, "\nBody, `%s`%s: %s\n", body.Media, optional, terms(body.Type))
		writeMembers(b, body.Members)
		writeExample(b, body.Example)
	}
	b.WriteString("\n| Status | | Document |\n|---|---|---|\n")
	var common []string
	for _, answer := range slices.Concat(c.Answers, c.Refusals) {
		if repeated[answer.Status+" "+answer.Description] > maxRepeated {
			common = append(common, answer.Status)
			continue
		}
		var documents []string
		for _, content := range answer.Content {
			documents = append(documents, terms(content.Type))
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", answer.Status, docpage.Cell(answer.Description), strings.Join(documents, "; "))
	}
	if len(common) > 0 {
		fmt.Fprintf(b, "| %s | [Common refusals](#common-refusals) | |\n", strings.Join(common, ", "))
	}
	for _, answer := range c.Answers {
		for _, content := range answer.Content {
			writeExample(b, content.Example)
			return
		}
	}
}

func required(yes bool) string {
	if yes {
		return " (required)"
	}
	return ""
}

func writeMembers(b *strings.Builder, members []help.Member) {
	if len(members) == 0 {
		return
	}
	b.WriteString("\n| Member | Type | |\n|---|---|---|\n")
	for _, m := range members {
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", m.Name, required(m.Required), terms(m.Type), docpage.Cell(m.Description))
	}
}

// maxExample bounds an example in bytes: longer ones are documents such as bundles, which pages of their own explain.
const maxExample = 700

func writeExample(b *strings.Builder, text string) {
	if text != "" && len(text) <= maxExample {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimSpace(text))
	}
}

var pattern = regexp.MustCompile(`matches (.*)$`)

// terms returns a type with links to documents.
func terms(all []help.Term) string {
	var b strings.Builder
	for _, t := range all {
		if t.Schema != "" {
			fmt.Fprintf(&b, "[%s](#document-%s)", t.Text, strings.ToLower(t.Schema))
			continue
		}
		text := pattern.ReplaceAllString(t.Text, "matches `$1`")
		if strings.Contains(text, "](") {
			text = pattern.ReplaceAllString(t.Text, "matches a pattern") // it would read as a link
		}
		b.WriteString(docpage.Cell(text))
		if strings.HasSuffix(t.Text, " ") {
			b.WriteString(" ")
		}
	}
	return b.String()
}
