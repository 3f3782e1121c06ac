package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// An owner erases one event, and then those of a trace. Each payload disappears from its page, and each erasure is
// listed.
func TestErasures(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	day(s)
	ann.Get("/console/erasures").Want(t, "none", http.StatusOK, "Nothing has been erased yet", "A new erasure")
	ann.Post("/console/events/e3", "do", "erase", "reason", "test_data").Want(t, "not sure", http.StatusUnprocessableEntity, "Confirm that the payloads")
	ann.Post("/console/events/e3", "do", "erase", "reason", "", "sure", "yes").Want(t, "no reason", http.StatusUnprocessableEntity, "reason must be one of")
	begun := ann.Post("/console/events/e3", "do", "erase", "reason", "test_data", "sure", "yes")
	begun.Want(t, "erase", http.StatusSeeOther)
	path, _, _ := strings.Cut(begun.Header.Get("Location"), "?")
	awaitErased(ann, strings.TrimPrefix(path, "/console/erasures/"))
	ann.Get(path+"?notice=erasure-begun").Want(t, "the erasure", http.StatusOK, "It is done.", "test data", "1 of 1 that match", "The erasure has started.")
	page := ann.Get("/console/events/e3")
	page.Want(t, "the event", http.StatusOK, "The envelope was erased on", "acme.delete")
	page.WantNone(t, "the event", "canary-3", "Erase the payload permanently")
	ann.Get("/console/events?trace_id=day").Want(t, "the list", http.StatusOK, `<span class="bad">erased</span>`)

	for what, fields := range map[string][]string{
		"no name": {"by", "trace_id", "name", ""}, "a wrong name": {"by", "trace_id", "name", "a b"}, "a wrong time": {"by", "trace_id", "name", "day", "from", "x"}, "another choice": {"by", "tool", "name", "acme"},
	} {
		ann.Post("/console/erasures", append(fields, "do", "erase", "reason", "other", "sure", "yes")...).Want(t, what, http.StatusUnprocessableEntity, "A new erasure")
	}
	ann.Post("/console/erasures", "do", "erase", "by", "principal", "name", "desk 1", "reason", "other").Want(t, "not sure", http.StatusUnprocessableEntity, `value="desk 1"`)
	begun = ann.Post("/console/erasures", "do", "erase", "by", "principal", "name", "desk 1", "from", "2026-01-01", "reason", "data_subject_request", "sure", "yes")
	path, _, _ = strings.Cut(begun.Header.Get("Location"), "?")
	awaitErased(ann, strings.TrimPrefix(path, "/console/erasures/"))
	page = ann.Get(path)
	page.Want(t, "by principal", http.StatusOK, "forgotten with the erasure", "1 of 1 that match")
	page.WantNone(t, "by principal", "desk 1", "data-every")
	if got := listed(ann.Get("/console/events?q=canary&signer=agent").Body); got != "e4 e2 e0" {
		t.Errorf("the remaining events: got %q", got)
	}
	ann.Get("/console/erasures").Want(t, "two", http.StatusOK, "a principal, whose name is forgotten", "event ", "data subject request")
	bob.Get(path).Want(t, "the other organization", http.StatusNotFound)
	bob.Get("/console/erasures").Want(t, "the other organization's list", http.StatusOK, "Nothing has been erased yet")
	bob.Get("/console/events/e1").Want(t, "the event of the same name", http.StatusOK, "acme.blue", "&#34;text&#34;: &#34;e1&#34;")

	for role, reads := range map[string]bool{"admin": true, "auditor": true, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		status := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[reads]
		list := p.Get("/console/erasures")
		list.Want(t, role, status)
		list.WantNone(t, role, "A new erasure")
		p.Get(path).Want(t, role, status)
		p.Post("/console/erasures", "do", "erase", "by", "trace_id", "name", "day", "reason", "other", "sure", "yes").Want(t, role+" erases", http.StatusForbidden)
	}
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]bool{"legal_hold": true}, nil)
	ann.Post("/console/erasures", "do", "erase", "by", "trace_id", "name", "day", "reason", "other", "sure", "yes").Want(t, "a legal hold", http.StatusConflict, "legal hold", `value="day"`)
}

// The verifier accepts a pack that the page links to, and it contains what the form requested.
func TestEvidence(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	day(s)
	ann.Get("/console/evidence?trace_id=day").Want(t, "the form", http.StatusOK, "What a pack proves", "aps verify", `href="/check"`, `value="day"`)
	ann.Post("/console/evidence", "do", "make", "from", "x", "trace_id", "kept").Want(t, "a wrong time", http.StatusUnprocessableEntity, "from must be", `value="kept"`)
	ann.Post("/console/evidence/coverage", "do", "compare", "format", "csv", "record", "tool\na\n", "from", "2026-01-01", "to", "2999-01-01").Want(t, "a comparison", http.StatusOK)
	ann.Post("/console/evidence", "do", "make", "coverage", "yes").Want(t, "comparisons without texts", http.StatusUnprocessableEntity, "Is read from the signed texts: check the box above too")
	for name, tt := range map[string]struct {
		fields   []string
		shown    uint64
		envelope bool
	}{
		"a trace":        {[]string{"trace_id", "day", "envelopes", "yes"}, 5, true},
		"a tool":         {[]string{"tool", "acme.orders.*"}, 3, false},
		"comparisons":    {[]string{"tool", "acme.orders.*", "envelopes", "yes", "coverage", "yes"}, 4, true},
		"no such events": {[]string{"agent_id", "agt_none", "from", "2026-01-01"}, 0, false},
	} {
		led := ann.Post("/console/evidence", append(tt.fields, "do", "make")...)
		led.Want(t, name, http.StatusSeeOther)
		file := ann.Get(led.Header.Get("Location"))
		if file.Status != http.StatusOK || file.Header.Get("Content-Type") != "application/zip" || !strings.Contains(file.Header.Get("Content-Disposition"), "evidence.zip") {
			t.Fatalf("%s: got %d %v", name, file.Status, file.Header)
		}
		key, err := tlog.ParseVerifierKey(s.Red.LogKey)
		if err != nil {
			t.Fatal(err)
		}
		report, err := pack.Check(strings.NewReader(file.Body), int64(len(file.Body)), pack.Options{
			OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) }})
		if err != nil || report.Shown != tt.shown || report.Begin != 0 && name == "a trace" || (report.Envelopes > 0) != tt.envelope || report.Shown+report.Withheld != uint64(report.End-report.Begin) {
			t.Errorf("%s: got %+v, %v", name, report, err)
		}
	}
	for role, makes := range map[string]bool{"admin": true, "auditor": true, "approver": false, "policy_editor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		page := p.Get("/console/evidence")
		if makes {
			page.Want(t, role, http.StatusOK, "Create the pack")
			continue
		}
		page.Want(t, role, http.StatusOK, "Your role can't create packs")
		page.WantNone(t, role, "Create the pack")
		led := p.Post("/console/evidence", "do", "make")
		p.Get(led.Header.Get("Location")).Want(t, role, http.StatusForbidden)
	}
}
