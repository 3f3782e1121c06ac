package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/web"
)

// list is a list of logs, whose positions are the paths of logs.
type list struct {
	directory id.Slug
	logs      []web.ListedLog
	err       error
}

func (l *list) Directory() id.Slug { return l.directory }

func (l *list) ListLogs(_ context.Context, after string, limit int) (logs []web.ListedLog, next string, err error) {
	for i, one := range l.logs {
		if one.Path <= after {
			continue
		}
		if len(logs) == limit {
			return logs, l.logs[i-1].Path, l.err
		}
		logs = append(logs, one)
	}
	return logs, "", l.err
}

// The list of logs is shown if the operator enables it, in pages, with its texts escaped.
func TestListOfLogs(t *testing.T) {
	w := newWorld(t)
	if body := w.page("/", http.StatusOK).Body.String(); strings.Contains(body, "Logs of this service") {
		t.Error("a service without a list shows one")
	}
	shown := &list{directory: "all-logs"}
	w.serve(nil, func(o *web.Options) { o.Logs = shown })
	w.want("/logs", `href="/log/all-logs"`, "No log is listed yet")
	for i := range 250 {
		path := "org_" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		shown.logs = append(shown.logs, web.ListedLog{Path: path, Size: id.Index(1000 + i)})
	}
	home := w.want("/", `href="/o/org_aa/checkpoint"`, "<td>1009</td>", `<a href="/logs">All logs</a>`)
	if strings.Contains(home, "1010") {
		t.Error("the home has more than ten logs")
	}
	w.page("/logs", http.StatusNotModified, "If-None-Match: "+w.page("/logs", http.StatusOK).Header().Get("ETag"))
	seen := 0
	for target := "/logs"; target != ""; {
		body := w.page(target, http.StatusOK).Body.String()
		seen += strings.Count(body, "/checkpoint")
		_, rest, more := strings.Cut(body, `href="/logs?after=`)
		if target = ""; more {
			after, _, _ := strings.Cut(rest, `"`)
			target = "/logs?after=" + after
		}
	}
	if seen != 250 {
		t.Errorf("the pages have %d logs", seen)
	}
	shown.directory = ""
	shown.logs = []web.ListedLog{{Path: "<b>x</b>", Key: `"><script>window.pwned=1</script>`}}
	if body := w.want("/logs", "&lt;script&gt;window"); strings.Contains(body, "<b>x") || strings.Contains(body, "holds this list") {
		t.Errorf("got %s", body)
	}
	for err, status := range map[error]int{fault.New(fault.NotFound, "Not found"): 404, fault.New(fault.Unavailable, "Later"): 503} {
		shown.err = err
		if answer := w.ask(http.MethodGet, "/logs", "Accept: "+browsers); answer.Code != status {
			t.Errorf("got %d, want %d", answer.Code, status)
		}
		if body := w.page("/", http.StatusOK).Body.String(); strings.Contains(body, "Logs of this service") {
			t.Error("the home has a list that can't be read")
		}
	}
}

func TestHealthOnHome(t *testing.T) {
	w := newWorld(t)
	reason := ""
	w.serve(nil, func(o *web.Options) { o.Health = func(context.Context) string { return reason } })
	w.want("/", "The service can be used.")
	reason = "the store <b>does not answer"
	if body := w.want("/", "can't be used at the moment: the store &lt;b&gt;does not answer."); strings.Contains(body, "The service can be used") {
		t.Errorf("got %s", body)
	}
}

// hashes are the event hashes of one organization.
type hashes map[id.Tenant]map[id.Hash]id.Index

func (h hashes) IndexOf(_ context.Context, t id.Tenant, hash id.Hash) (id.Index, error) {
	if at, ok := h[t][hash]; ok {
		return at, nil
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func TestFindByHash(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Red, id.DiscloseCommitment, "two", nil)
	hash := id.Hash{1, 0xab}
	w.serve(nil, func(o *web.Options) { o.Hashes = hashes{ledgertest.Red: {hash: 1}} })
	for _, text := range []string{hash.String(), strings.ToUpper(hash.String())} {
		if got := w.page("/find?log=red&event="+text, http.StatusSeeOther).Header().Get("Location"); got != redEvent+"two" {
			t.Errorf("%s: got %s", text, got)
		}
		w.page("/find?log=blue&event="+text, http.StatusNotFound)
	}
	w.page("/find?log=red&event="+hash.String()[1:], http.StatusNotFound)
	w.page("/find?log=red&event="+id.Hash{2}.String(), http.StatusNotFound)
	w.append(ledgertest.Red, id.DiscloseFull, hash.String(), nil) // an ID takes precedence over a hash
	if got := w.page("/find?log=red&event="+hash.String(), http.StatusSeeOther).Header().Get("Location"); got != redEvent+hash.String() {
		t.Errorf("got %s", got)
	}
}

// want returns the body of a page and fails unless it contains the texts.
func (w *world) want(target string, texts ...string) string {
	w.Helper()
	body := w.page(target, http.StatusOK).Body.String()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			w.Errorf("%s lacks %s: %s", target, text, body)
		}
	}
	return body
}
