package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// allowed starts a service that may call receivers on this machine.
func allowed(t testing.TB) *servicetest.Service {
	return servicetest.New(t, "--callout-allow", "127.0.0.0/8")
}

// receiver is a receiver of webhooks.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []string
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		text, _ := io.ReadAll(h.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, string(text))
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// answer sets the status of the following responses.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// take returns the received bodies that contain a text.
func (r *receiver) take(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.bodies), func(body string) bool { return !strings.Contains(body, part) })
}

// awaitPage reloads a page until it contains a text.
func awaitPage(t testing.TB, p *servicetest.Person, path, text string) servicetest.Answer {
	t.Helper()
	var got servicetest.Answer
	for range 600 {
		if got = p.Get(path); strings.Contains(got.Body, text) {
			return got
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s never contains %q: %s", path, text, got.Body)
	return got
}

// A receiver is created, tested, changed, switched off and deleted without JavaScript.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	s, to := allowed(t), newReceiver(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Post("/console/webhooks", "do", "create", "url", "http://192.0.2.1/x", "events", "approval.*", "events", "run.*", "types", "decision.denied", "name", "<b>no</b>", "tools", "acme.**\nother.*").
		Want(t, "an address that is not public", http.StatusUnprocessableEntity, "url must be a public https address", "&lt;b&gt;no&lt;/b&gt;",
			`value="run.*" checked`, `value="decision.denied"`, "acme.**\nother.*</textarea>")
	ann.Post("/console/webhooks", "do", "create", "url", to.URL, "format", "standard").Want(t, "without notices", http.StatusUnprocessableEntity, "events must have 1 to 32 elements")
	made := ann.Post("/console/webhooks", "do", "create", "name", "Hook <1>", "url", to.URL+"/?key=k1", "events", "decision.*", "types", "event.stored", "tools", "acme.orders.*", "format", "standard")
	made.Want(t, "create", http.StatusOK, "whsec_", "whpk_")
	page := regexp.MustCompile(`/console/webhooks/whe_[^"?]+`).FindString(made.Body)
	ann.Get("/console/webhooks").Want(t, "list", http.StatusOK, `href="`+page+`"`, "Hook &lt;1&gt;", to.URL+"/?key=k1", "event.stored", "No delivery was given up.")
	ann.Get(page).WantNone(t, "the secret", "whsec_")
	ann.Post(page, "do", "rotate").Want(t, "rotate", http.StatusOK, "whsec_", "also sign until")
	ann.Get(page).Want(t, "page", http.StatusOK, "acme.orders.*", "whpk_", "Nothing has been sent yet.", "Former key", `value="decision.*" checked`, `value="event.stored"`)
	bob.Get(page).Want(t, "blue", http.StatusNotFound)
	for _, do := range []string{"change", "test", "switch-on", "switch-off", "rotate", "delete"} {
		bob.Post(page, "do", do, "url", to.URL, "events", "run.*", "format", "standard").Want(t, "blue: "+do, http.StatusNotFound)
	}
	bob.Get("/console/webhooks").WantNone(t, "blue", "Hook", "k1")
	ann.Post(page, "do", "test").Want(t, "test", http.StatusSeeOther)
	awaitPage(t, ann, page, "webhook.test").Want(t, "tested", http.StatusOK, "204 in ", "delivered")
	if got := to.take("webhook.test"); len(got) != 1 {
		t.Errorf("the receiver got %q", got)
	}
	s.Red.Send("fits", map[string]any{"tool_name": "acme.orders.read"})
	awaitPage(t, ann, page, "event.stored</code></td>\n<td class=\"t\"><time")
	ann.Post(page, "do", "change", "name", "Slack", "url", to.URL, "types", "plan.threshold", "format", "slack").Want(t, "change", http.StatusSeeOther)
	ann.Get(page).Want(t, "changed", http.StatusOK, "Slack", "plan.threshold", `<option value="slack" selected>`, "<dt>Tools</dt><dd>all</dd>")
	ann.Post(page, "do", "change", "name", "Slack", "url", to.URL, "types", "nothing.*", "format", "slack").
		Want(t, "a wrong change", http.StatusUnprocessableEntity, "events[0] is not a type of notices", `value="nothing.*"`)
	ann.Post(page, "do", "switch-off").Want(t, "off", http.StatusSeeOther)
	ann.Get(page).Want(t, "disabled", http.StatusOK, "a member switched it off", `value="switch-on"`)
	ann.Post(page, "do", "switch-on").Want(t, "on", http.StatusSeeOther)
	ann.Get(page).Want(t, "enabled", http.StatusOK, `value="switch-off"`)
	ann.Post(page, "do", "delete").Want(t, "delete", http.StatusSeeOther)
	ann.Get(page).Want(t, "deleted", http.StatusNotFound)
	ann.Post(page, "do", "delete").Want(t, "delete again", http.StatusNotFound)
}

// Permitted roles rotate the key that signs callbacks, without JavaScript.
func TestCallbackKey(t *testing.T) {
	t.Parallel()
	s := allowed(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Get("/console/webhooks").Want(t, "before", http.StatusOK, "No callback has been sent yet.")
	for _, want := range []string{"Callbacks are also signed with the old key", "also signs until"} { // the first rotation generates the key
		moved := ann.Post("/console/webhooks", "do", "rotate")
		moved.Want(t, "rotate", http.StatusSeeOther)
		ann.Get(moved.Header.Get("Location")).Want(t, "rotated", http.StatusOK, "The key that signs callbacks is rotated.", "whpk_", want)
	}
	bob.Get("/console/webhooks").Want(t, "blue", http.StatusOK, "No callback has been sent yet.")
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	carl.Get("/console/webhooks").WantNone(t, "an auditor", `value="rotate"`)
	carl.Post("/console/webhooks", "do", "rotate").Want(t, "an auditor rotates", http.StatusForbidden)
}

// A failed delivery is listed, and sent again once the receiver works.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s, to := allowed(t), newReceiver(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	made := ann.Post("/console/webhooks", "do", "create", "url", to.URL+"/?key=k1", "types", "event.stored", "tools", "acme.dead", "format", "standard")
	page := regexp.MustCompile(`/console/webhooks/whe_[^"?]+`).FindString(made.Body)
	to.answer(http.StatusGone)
	s.Red.Send("dead", map[string]any{"tool_name": "acme.dead"})
	list := awaitPage(t, ann, "/console/webhooks", "Send again")
	list.Want(t, "the list", http.StatusOK, "disabled (gone)", "answered 410")
	carl.Get("/console/webhooks").WantNone(t, "an auditor", "Send again", "k1")
	carl.Get(page).Want(t, "the page of an auditor", http.StatusOK, "it responded that it is gone (410)")
	delivery := regexp.MustCompile(`name="delivery" value="([^"]+)"`).FindStringSubmatch(list.Body)
	if delivery == nil {
		t.Fatalf("no delivery: %s", list.Body)
	}
	bob.Post("/console/webhooks", "do", "replay", "delivery", delivery[1]).Want(t, "blue", http.StatusNotFound)
	to.answer(http.StatusNoContent)
	ann.Post(page, "do", "switch-on").Want(t, "on", http.StatusSeeOther)
	ann.Post("/console/webhooks", "do", "replay", "delivery", delivery[1]).Want(t, "replay", http.StatusSeeOther)
	awaitPage(t, ann, "/console/webhooks", "No delivery was given up.")
	awaitPage(t, ann, page, "delivered")
}

// Roles without the permission to manage see receivers without addresses and forms.
func TestWebhookRoles(t *testing.T) {
	t.Parallel()
	s := allowed(t)
	made := s.SignIn(s.Red.Owner).Post("/console/webhooks", "do", "create", "url", "http://127.0.0.1:9/concealed", "events", "run.*", "format", "standard")
	page := regexp.MustCompile(`/console/webhooks/whe_[^"?]+`).FindString(made.Body)
	for role, may := range map[string]bool{"admin": true, "policy_editor": false, "approver": false, "auditor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		for _, path := range []string{"/console/webhooks", page} {
			got := p.Get(path)
			got.Want(t, role+" "+path, http.StatusOK, "run.*")
			if strings.Contains(got.Body, "concealed") != may || strings.Contains(got.Body, "<textarea") != may {
				t.Errorf("%s at %s: shows address and forms: %v, want %v", role, path, !may, may)
			}
		}
		if may {
			continue
		}
		for _, form := range [][]string{{"/console/webhooks", "create"}, {"/console/webhooks", "replay"}, {page, "change"}, {page, "test"}, {page, "switch-off"}, {page, "delete"}} {
			p.Post(form[0], "do", form[1], "delivery", "msg_x").Want(t, role+" "+form[1], http.StatusForbidden, "Your role does not allow this")
		}
	}
}
