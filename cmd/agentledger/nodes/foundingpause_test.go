package nodes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// A node pauses in the middle of creating organizations, each at a different point, for longer than a request may take
// and until the other node has forgotten it. In the meantime, their slugs are requested at the other node. Each slug
// belongs to at most one organization, and no response mentions a second one. A caller whose organization may exist is
// answered so. If neither caller was told of an organization, both calls may have failed: one more call settles it, and
// then the slug has one.
func TestFoundingAtPausedNode(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	settings := filepath.Join(t.TempDir(), "agentledger.json")
	if err := os.WriteFile(settings, []byte(`{"tuning":{"request_timeout":"2s"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--config", settings}
	one, two := servicetest.StartNode(t, server.URL(), flags), servicetest.StartNode(t, server.URL(), flags)
	for _, n := range []*servicetest.Node{one, two} {
		n.AwaitShards(2)
	}
	began := time.Now()
	if status, body := foundAt(one, "first"); status != http.StatusCreated {
		t.Fatalf("got %d %s", status, body)
	}
	took := time.Since(began)
	const names = 10
	type answer struct {
		status int
		body   string
	}
	first, second := make([]answer, names), make([]answer, names)
	var group sync.WaitGroup
	for i := range names { // they are at different points when the node pauses
		group.Go(func() { first[i].status, first[i].body = foundAt(one, fmt.Sprint("org-", i)) })
		time.Sleep(took / 4)
	}
	one.Signal(syscall.SIGSTOP)
	two.AwaitShards(1)
	time.Sleep(time.Until(began.Add(3 * time.Second)))
	for i := range names {
		second[i].status, second[i].body = foundAt(two, fmt.Sprint("org-", i))
	}
	one.Signal(syscall.SIGCONT)
	group.Wait()
	one.AwaitShards(2)
	for i := range names {
		slug := fmt.Sprint("org-", i)
		made, made2 := first[i].status == http.StatusCreated, second[i].status == http.StatusCreated
		answered := made || made2
		for _, a := range []answer{first[i], second[i]} {
			answered = answered || strings.Contains(a.body, "outcome_unknown")
		}
		if made && made2 {
			t.Errorf("%s was created twice", slug)
		}
		switch status, calls := settleFounding(two, slug); {
		case status == http.StatusCreated && (made || made2):
			t.Errorf("%s was created, but its slug is free: got %+v, then %+v", slug, first[i], second[i])
		case status == http.StatusConflict && calls == 1 && !answered:
			t.Errorf("%s exists, but its caller was not told: got %+v, then %+v", slug, first[i], second[i])
		}
		for _, n := range []*servicetest.Node{one, two} {
			n.AwaitStatus(headPath(slug), http.StatusOK)
		}
	}
}

// settleFounding requests a slug until the node creates its organization or rejects the slug as taken. After more than
// one call, an earlier call may be the reason.
func settleFounding(n *servicetest.Node, slug string) (status, calls int) {
	n.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, body := foundAt(n, slug)
		calls++
		if status == http.StatusCreated || status == http.StatusConflict {
			return status, calls
		}
		if time.Now().After(end) {
			n.Fatalf("%s: got %d %s", slug, status, body)
		}
	}
}

// foundAt creates an organization at a node.
func foundAt(n *servicetest.Node, slug string) (status int, body string) {
	return post(n.Identity+"/v1/id/platform/organizations",
		fmt.Sprintf(`{"name":"Test","slug":%q,"admin_email":%q}`, slug, slug+"@test.example"))
}
