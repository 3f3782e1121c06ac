package console_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A search is saved, shown to every member of its organization, changed and removed, by roles that change something.
func TestSavedViews(t *testing.T) {
	s := servicetest.New(t)
	ann, blue := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	s.Red.Send("e1", map[string]any{"tool_name": "files.read"})
	const search, name = `tool:files.read from:-7d for:"Zoë <b>"`, `Zoë’s “files” <b> & 🔥`
	address := "/console/activity?" + url.Values{"q": {search}}.Encode()

	page := ann.Get(address).Body
	if !strings.Contains(html.UnescapeString(page), "/console/activity/views?"+url.Values{"q": {search}}.Encode()+"#save") || strings.Contains(page, "All views") {
		t.Errorf("no link saves the view: %s", page)
	}
	form := ann.Get("/console/activity/views?" + url.Values{"q": {search}}.Encode())
	form.Want(t, "form", http.StatusOK, "No view is saved", `value="tool:files.read from:-7d for:&#34;Zoë &lt;b&gt;&#34;"`)
	ann.Post("/console/activity/views", "do", "save", "name", name, "search", "amount:").Want(t, "wrong search", http.StatusUnprocessableEntity, "needs a value")
	ann.Post("/console/activity/views", "do", "save", "name", strings.Repeat("x", 61), "search", search).Want(t, "long", http.StatusUnprocessableEntity, "1 to 60 printable")
	ann.Post("/console/activity/views", "do", "save", "name", name, "search", search).Want(t, "save", http.StatusSeeOther)

	max := s.Red.Join("max", "member")
	for who, person := range map[string]*servicetest.Person{"owner": ann, "member": s.SignIn(max)} {
		page := person.Get(address).Body
		if !strings.Contains(page, `aria-current="true"><bdi>Zoë’s “files” &lt;b&gt; &amp; 🔥</bdi></a>`) || strings.Contains(page, "Save view") {
			t.Errorf("%s: the view is not shown as the current one: %s", who, page)
		}
		list := person.Get("/console/activity/views")
		if list.Status != http.StatusOK || !strings.Contains(html.UnescapeString(list.Body), `href="`+address+`"`) {
			t.Errorf("%s: no link to the view: %s", who, list.Body)
		}
		if got, want := strings.Contains(list.Body, "<form class=\"card"), who == "owner"; got != want {
			t.Errorf("%s: form %v, want %v", who, got, want)
		}
	}
	s.SignIn(max).Post("/console/activity/views", "do", "remove", "view", name).Want(t, "a member removes", http.StatusForbidden)
	if body := blue.Get("/console/activity/views").Body; strings.Contains(body, "Zoë") {
		t.Errorf("blue sees it: %s", body)
	}
	blue.Post("/console/activity/views", "do", "remove", "view", name).Want(t, "blue removes", http.StatusNotFound)

	ann.Get("/console/activity/views?"+url.Values{"view": {name}}.Encode()).Want(t, "change", http.StatusOK, "Change a view", `name="renames" value="Zoë’s “files” &lt;b&gt; &amp; 🔥"`)
	ann.Get("/console/activity/views?view=none").Want(t, "unknown", http.StatusNotFound)
	ann.Post("/console/activity/views", "do", "save", "name", "Files", "search", search, "renames", name).Want(t, "rename", http.StatusSeeOther)
	if body := ann.Get("/console/activity/views").Body; strings.Contains(body, "🔥") || !strings.Contains(body, "<bdi>Files</bdi>") {
		t.Errorf("not renamed: %s", body)
	}
	for i := range 6 {
		ann.Post("/console/activity/views", "do", "save", "name", "View "+string(rune('a'+i)), "search", "tool:t"+string(rune('a'+i)))
	}
	if body := ann.Get("/console/activity?q=tool:te").Body; strings.Count(body, `tool:t`) > 20 || !strings.Contains(body, `aria-current="true"><bdi>View e</bdi>`) ||
		strings.Contains(body, "View d") || !strings.Contains(body, "All views") {
		t.Errorf("the list does not show the current view and three others: %s", body)
	}
	ann.Post("/console/activity/views", "do", "remove", "view", "files").Want(t, "remove", http.StatusSeeOther)
	ann.Get("/console/audit").Want(t, "audit", http.StatusOK, "saved the view Files, before: Zoë’s “files”", "removed the view Files")
}
