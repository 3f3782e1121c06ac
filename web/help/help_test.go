package help_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agentledger/agentledger/docs"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/help"
)

// The reference has each operation of the document once, in its area, with its parameters and statuses, and nothing else.
func TestReferenceIsWhole(t *testing.T) {
	r, err := help.ReadReference(edge.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, a := range r.Areas {
		known := make(map[string]bool)
		for _, s := range a.Schemas {
			known[s.Name] = true
		}
		for _, c := range a.Calls {
			for _, one := range append([]*help.Call{c}, c.Also...) {
				if got[one.ID] != "" {
					t.Errorf("%s is there twice", one.ID)
				}
				var parts []string
				for _, p := range one.Parameters {
					parts = append(parts, p.In+" "+p.Name)
				}
				for _, answer := range slices.Concat(one.Answers, one.Refusals) {
					parts = append(parts, answer.Status)
				}
				slices.Sort(parts)
				got[one.ID] = a.Name + " " + one.Method + " " + one.Path + " " + one.Summary + " " + strings.Join(parts, ",")
				for _, answer := range one.Answers {
					for _, content := range answer.Content {
						for _, term := range content.Type {
							if term.Schema != "" && !known[term.Schema] {
								t.Errorf("%s: the area lacks %s", one.ID, term.Schema)
							}
						}
					}
				}
			}
		}
	}
	want := operations(t)
	for id, w := range want {
		if got[id] != w {
			t.Errorf("%s: got %q, want %q", id, got[id], w)
		}
	}
	if len(got) != len(want) || len(got) < 250 {
		t.Errorf("got %d operations, want %d", len(got), len(want))
	}
}

// operations returns what the document has of each operation, by another way than the reference.
func operations(t *testing.T) map[string]string {
	t.Helper()
	type part struct {
		Reference string `json:"$ref"`
		Name, In  string
	}
	type operation struct {
		Tags       []string
		ID         string `json:"operationId"`
		Summary    string
		Parameters []part
		Responses  map[string]json.RawMessage
	}
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]part }
	}
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for path, item := range document.Paths {
		var shared []part
		if text := item["parameters"]; text != nil {
			if err := json.Unmarshal(text, &shared); err != nil {
				t.Fatal(err)
			}
		}
		for method, text := range item {
			if !slices.Contains([]string{"get", "head", "options", "post", "put", "patch", "delete"}, method) {
				continue
			}
			var o operation
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, p := range slices.Concat(shared, o.Parameters) {
				if p.Reference != "" {
					p = document.Components.Parameters[p.Reference[strings.LastIndex(p.Reference, "/")+1:]]
				}
				parts = append(parts, p.In+" "+p.Name)
			}
			for status := range o.Responses {
				parts = append(parts, status)
			}
			slices.Sort(parts)
			all[o.ID] = o.Tags[0] + " " + strings.ToUpper(method) + " " + path + " " + o.Summary + " " + strings.Join(parts, ",")
		}
	}
	return all
}

func TestMembers(t *testing.T) {
	r, err := help.ReadReference(`{"tags":[{"name":"a"}],"paths":{"/x":{"post":{"tags":["a"],"operationId":"x",
		"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}},"responses":{"204":{"description":"Done."}}}}},
		"components":{"schemas":{"Y":{"type":"string","enum":["p","q"]},"X":{"type":"object","required":["id"],"properties":{
		"id":{"type":"string","maxLength":8,"description":"Its name."},"no":false,"n":{"type":["integer","null"],"minimum":1,"maximum":30},
		"limits":{"type":"object","properties":{"agents":{"const":3}}},"all":{"type":"array","items":{"type":"object","properties":{"y":{"$ref":"#/components/schemas/Y"}}}}}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Areas[0].Schemas {
		for _, m := range s.Members {
			line := s.Name + "." + m.Name + ":"
			for _, term := range m.Type {
				line += term.Text
			}
			if m.Required {
				line += " required"
			}
			got = append(got, line+" "+m.Description)
		}
	}
	want := []string{"X.all:array of object ", "X.all[].y:Y ", "X.id:string, at most 8 characters required Its name.", "X.limits:object ",
		"X.limits.agents:3 ", "X.n:integer or null, 1 to 30 "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if y := r.Areas[0].Schemas[1]; y.Name != "Y" || len(y.Type) != 1 || y.Type[0].Text != `"p", "q"` {
		t.Errorf("got %+v", y)
	}
}

// Each alert of the alerts file has a runbook and vice versa, with the address that the file names, and all links to
// sections lead to sections of the page.
func TestRunbooksOfAlerts(t *testing.T) {
	file, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, found := range regexp.MustCompile(`- alert: (\w+)\n(?:\s+.*\n)*?\s+labels: \{severity: (\w+)\}\n(?:\s+.*\n)*?\s+runbook: (.*)`).FindAllSubmatch(file, -1) {
		want = append(want, string(found[1])+" "+string(found[2]))
		if link := string(found[3]); link != "/help/runbooks#"+string(found[1]) {
			t.Errorf("%s: got the runbook %s", found[1], link)
		}
	}
	if n := strings.Count(string(file), "- alert:"); n != len(want) || n < 50 {
		t.Errorf("%d of %d alerts have a runbook", len(want), n)
	}
	pages, err := help.ReadRunbooks(docs.Runbooks)
	if err != nil {
		t.Fatal(err)
	}
	anchors, texts := make(map[string]bool), ""
	anchor := func(id string) {
		if anchors[id] {
			t.Errorf("the anchor %s is there twice", id)
		}
		anchors[id] = true
	}
	for _, p := range pages {
		anchor(p.ID)
		texts += string(p.Intro)
		if p.Title == "" || p.Intro == "" {
			t.Errorf("%s has no title or no introduction", p.ID)
		}
		for _, a := range p.Alerts {
			anchor(a.Name)
			got = append(got, a.Name+" "+a.Severity)
			texts += string(a.Symptom + a.Steps)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	links := regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(texts, -1)
	if len(links) < 20 {
		t.Errorf("found %d links between runbooks", len(links))
	}
	for _, found := range links {
		if !anchors[found[1]] {
			t.Errorf("a link leads to #%s, which is not there", found[1])
		}
	}
	for _, left := range []string{"](", "**", "```", "\n|"} {
		if strings.Contains(regexp.MustCompile(`(?s)<(pre|code).*?</(pre|code)>`).ReplaceAllString(texts, ""), left) {
			t.Errorf("a text has %q", left)
		}
	}
}

// A section that is not the runbook of an alert is an error, and so is a link to a runbook that is not there.
func TestReadRunbooksErrors(t *testing.T) {
	const good = "# A\n\nText.\n\n## AgentledgerA\n\n**Page.** It is full.\n\n1. Empty it.\n"
	for _, test := range []struct{ name, document, want string }{
		{"no severity", "# A\n\n## AgentledgerA\n\nIt is full.\n\n1. Empty it.\n", `runbooks/a.md: section "AgentledgerA" is not a runbook`},
		{"unknown severity", "# A\n\n## AgentledgerA\n\n**Mail.** It is full.\n\n1. Empty it.\n", `runbooks/a.md: section "AgentledgerA" is not a runbook`},
		{"no steps", "# A\n\n## AgentledgerA\n\n**Page.** It is full.\n\n- Empty it.\n", `runbooks/a.md: section "AgentledgerA" is not a runbook`},
		{"another section", good + "\n### More\n\n**Page.** It is full.\n\n1. Empty it.\n", `runbooks/a.md: section "More" is not a runbook`},
		{"link", good + "2. See [B](#agentledgerb).\n", `runbooks/a.md: section "AgentledgerA" links to #agentledgerb, which is not a runbook`},
		{"link to another page", good + "2. See [B](b.md#agentledgerb).\n", `runbooks/a.md: section "AgentledgerA" links to #agentledgerb, which is not a runbook`},
		{"good", good + "2. See [A](a.md#agentledgera) and [backups](../operate/backup.md#restore).\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := help.ReadRunbooks(fstest.MapFS{"runbooks/a.md": {Data: []byte(test.document)}})
			if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	files := fstest.MapFS{
		"runbooks/first.md": {Data: []byte("# T `a`\n\nSee `a<b` and\n**the [x](second.md#agentledgerb)**.\n\n## AgentledgerA\n\n**Page.** [o](#agentledgera), [c](../demo.md#x).\n" +
			"\n1. first\n2. second\n\n   ```sh\n   ## no heading <b>\n   ```\n\n- one\n  more\n- [two](../../deploy/a.yaml)\n")},
		"runbooks/second.md": {Data: []byte("# U\n\nV.\n\n## AgentledgerB\n\n**Ticket.** Full.\n\n1. Look.\n\n| A | B |\n|---|---|\n| x \\| y | <script> |\n")},
	}
	pages, err := help.ReadRunbooks(files)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range pages {
		got.WriteString(p.ID + " " + string(p.Title) + "\n" + string(p.Intro))
		for _, a := range p.Alerts {
			got.WriteString(a.Name + " " + a.Severity + "\n" + string(a.Symptom+a.Steps))
		}
	}
	const repository = "https://github.com/agentledger/agentledger/blob/main/"
	want := `first T <code>a</code>
<p>See <code>a&lt;b</code> and
<b>the <a href="#AgentledgerB">x</a></b>.</p>
AgentledgerA page
<p><a href="#AgentledgerA">o</a>, <a href="` + repository + `docs/demo.md#x">c</a>.</p>
<ol class="list"><li class="tight"><b>1.</b> first</li>
<li class="tight"><b>2.</b> second<figure class="code"><pre tabindex="0" role="group" aria-label="Code">## no heading &lt;b&gt;</pre></figure>
</li>
</ol>
<ul class="list"><li class="tight">one
more</li>
<li class="tight"><a href="` + repository + `deploy/a.yaml">two</a></li>
</ul>
second U
<p>V.</p>
AgentledgerB ticket
<p>Full.</p>
<ol class="list"><li class="tight"><b>1.</b> Look.</li>
</ol>
<table class="rows keep">
<thead><tr><th scope="col" class="wrap">A</th><th scope="col" class="wrap">B</th></tr></thead>
<tbody>
<tr><td class="k wrap">x | y</td><td class="wrap">&lt;script&gt;</td></tr>
</tbody>
</table>
`
	if got.String() != want {
		t.Errorf("got %s\nwant %s", got.String(), want)
	}
}
