package console_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A record is compared with the acts of the reader's organization. Texts of the record are shown as texts.
func TestCoveragePage(t *testing.T) {
	t.Parallel()
	const path = "/console/evidence/coverage"
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	day(s)
	ann.Get(path).Want(t, "the form", http.StatusOK, "Did every call go through the policy?", "Compare</button>")
	today := time.Now().UTC().Format("2006-01-02")
	post := func(p *servicetest.Person, record string, more ...string) servicetest.Answer {
		return p.Post(path, append([]string{"do", "compare", "format", "csv", "record", record, "from", today, "to", "2999-01-01"}, more...)...)
	}
	const record = "tool,event_id,agent\r\nacme.mail.send,e2,\r\nacme.mail.send,e2,\r\nacme.delete,e1,\r\nacme.delete,e9,<b>x</b>\r\nacme.delete,e3,\r\n"
	found := post(ann, record)
	found.Want(t, "findings", http.StatusOK, "of 5 calls have no act that permits them", "not covered", "Made twice: another call has the act with its identifier",
		"No act fits", "&lt;b&gt;x&lt;/b&gt;", "Stated in the log", `href="/console/acts/e2"`)
	found.WantNone(t, "findings", "tool,event_id,agent")
	if strings.Contains(found.Body, "<b>x</b>") {
		t.Error("a text of the record is markup")
	}
	post(ann, "tool,event_id\nacme.mail.send,e2\n").Want(t, "covered", http.StatusOK, "Each call has an act that permits it", `badge is-good">covered`)
	post(ann, "tool,event_id\nacme.mail.send,e2\n", "strict", "yes").Want(t, "strict", http.StatusOK, "Each call has an act that permits it")
	sum := func(text string) string { return fmt.Sprintf("<code>%x</code>", sha256.Sum256([]byte(text))) }
	post(ann, "tool,event_id\r\nacme.mail.send,e2\r\n").Want(t, "pasted", http.StatusOK, sum("tool,event_id\nacme.mail.send,e2\n")+", as pasted, with LF line ends")
	bob := s.SignIn(s.Blue.Owner)
	file := func(p *servicetest.Person, name, content string, more ...string) servicetest.Answer {
		return p.PostFile(path, "file", name, content, append([]string{"do", "compare", "format", "csv", "from", today, "to", "2999-01-01"}, more...)...)
	}
	const windows = "tool,event_id\r\nacme.mail.send,e2\r\n"
	file(ann, "calls.csv", windows, "record", "").Want(t, "a file", http.StatusOK, "Each call has an act that permits it", sum(windows)+"</dd>")
	file(bob, "calls.csv", windows).Want(t, "the other organization's file", http.StatusOK, "1 of 1 call has no act that permits it")
	file(ann, "", "", "record", "tool,event_id\nacme.mail.send,e2\n").Want(t, "no file", http.StatusOK, "Each call has an act that permits it", "as pasted")
	refused := file(ann, "calls.csv", "tool\nCANARY,b\n")
	refused.Want(t, "a bad file", http.StatusUnprocessableEntity, `id="field-file-error"`, "Can&#39;t be read: line 2: wrong number of fields")
	refused.WantNone(t, "a bad file", "CANARY")
	file(ann, "", "").Want(t, "neither", http.StatusUnprocessableEntity, `id="field-file-error"`, "Must be chosen, or its text be pasted")
	file(ann, "calls.csv", windows, "record", "x").Want(t, "both", http.StatusUnprocessableEntity, `id="field-record-error"`, "Must be empty if a file is chosen")
	file(ann, "calls.csv", "tool\n\xff\n").Want(t, "no text", http.StatusUnprocessableEntity, "The form can&#39;t be read")
	file(ann, "calls.csv", strings.Repeat("x", 4<<20)).Want(t, "too large a file", http.StatusRequestEntityTooLarge)
	many := make([]string, 0, 200)
	for range 100 {
		many = append(many, "paths", "x")
	}
	file(ann, "calls.csv", windows, many...).Want(t, "too many fields", http.StatusUnprocessableEntity, "The form can&#39;t be read")
	ann.PostFile("/console/evidence", "from", "", today, "do", "make").Want(t, "files on a page without", http.StatusUnsupportedMediaType)
	post(bob, "tool,event_id\nacme.mail.send,e2\n").Want(t, "the other organization", http.StatusOK, "1 of 1 call has no act that permits it", "No act fits")
	for name, c := range map[string]struct {
		record string
		more   []string
		shows  string
	}{
		"a row":      {"tool\na,b\n", nil, "Can&#39;t be read: line 2: wrong number of fields"},
		"an unknown": {"tool\na\n", []string{"format", "xml"}, "format must be ndjson, csv, otlp or access"},
		"a path":     {"tool\na\n", []string{"paths", "x"}, "a path must be like POST"},
	} {
		if name == "an unknown" {
			ann.Post(path, "do", "compare", "format", "xml", "record", c.record, "from", today, "to", "2999-01-01").Want(t, name, http.StatusUnprocessableEntity, "Must be ndjson")
			continue
		}
		post(ann, c.record, c.more...).Want(t, name, http.StatusUnprocessableEntity, c.shows)
	}
	ann.Post(path, "do", "compare", "format", "csv", "record", "tool\na\n", "from", "x", "to", "y").Want(t, "times", http.StatusUnprocessableEntity, "Must be a day or a time in UTC")
	ann.Post(path, "do", "compare", "format", "csv", "record", strings.Repeat("x", 4<<20), "from", today, "to", today).Want(t, "too large", http.StatusRequestEntityTooLarge)
	for _, role := range []string{"approver", "member"} {
		p := s.SignIn(s.Red.Join(role, role))
		p.Get(path).Want(t, role, http.StatusOK, "Your role can't compare records")
		post(p, record).Want(t, role, http.StatusForbidden)
		file(p, "calls.csv", record).Want(t, role, http.StatusForbidden)
	}
}
