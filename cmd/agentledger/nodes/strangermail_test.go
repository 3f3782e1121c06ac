package nodes_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// inviter is an owner of an organization, whose session is valid at every node.
type inviter struct {
	t    *testing.T
	org  *servicetest.Organization
	http *http.Client
}

func newInviter(t *testing.T, node *process, slug string) *inviter {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	owner := "ops@" + slug + ".example"
	i := &inviter{t, servicetest.At(t, node.main, node.identity).Found(slug, slug, owner), &http.Client{Jar: jar}}
	if status := i.call(http.MethodPost, node.identity+"/v1/id/auth/login",
		fmt.Sprintf(`{"email":%q,"password":%q}`, owner, servicetest.Password)); status != http.StatusOK {
		t.Fatalf("sign in: got %d", status)
	}
	return i
}

// call retries a call that is answered 503, because organizations may move between the nodes.
func (i *inviter) call(method, url, body string) (status int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequestWithContext(i.t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			i.t.Error(err)
			return 0
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := i.http.Do(r)
		if err != nil {
			i.t.Error(err)
			return 0
		}
		_ = answer.Body.Close()
		if status = answer.StatusCode; status != http.StatusServiceUnavailable {
			return status
		}
	}
	return status
}

func (i *inviter) invite(node *process, address string) (status int) {
	return i.call(http.MethodPost, node.main+"/v1/id/orgs/"+i.org.ID+"/invitations",
		fmt.Sprintf(`{"email":%q,"role":"member"}`, address))
}

// Mails to strangers are counted over all nodes: an address gets one, and an organization causes at most as many as the
// setting allows, however many nodes accept the invitations concurrently. The other organization has its own count.
func TestMailsToStrangersOnTwoNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	const daily = 4
	settings := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `{"tuning":{"stranger_mails":%d}}`, daily), 0o600); err != nil {
		t.Fatal(err)
	}
	box := servicetest.NewMailbox(t)
	var nodes [2]*process
	for n := range nodes {
		nodes[n] = newProcess(t, server.URL(), servicetest.Program(t))
		nodes[n].more = []string{"--smtp", box.URL, "--config", settings}
		nodes[n].start()
	}
	red, blue := newInviter(t, nodes[0], "red"), newInviter(t, nodes[1], "blue")

	// inviteAll sends 12 invitations from organizations at both nodes concurrently, and returns the addresses of those
	// that were created. All others must be rejected.
	inviteAll := func(from []*inviter, address string) (made []string) {
		var mu sync.Mutex
		var group sync.WaitGroup
		for n := range 12 {
			group.Go(func() {
				to := fmt.Sprintf(address, n)
				status := from[n/2%len(from)].invite(nodes[n%2], to)
				mu.Lock()
				defer mu.Unlock()
				switch status {
				case http.StatusCreated:
					made = append(made, to)
				case http.StatusTooManyRequests:
				default:
					t.Errorf("an invitation of %s: got %d", to, status)
				}
			})
		}
		group.Wait()
		return made
	}
	both := []*inviter{red, blue}
	one := inviteAll(both, "eve+%d@stranger.example")
	if len(one) != 1 {
		t.Errorf("one address: %d invitations were created, want 1", len(one))
	}
	if again := inviteAll(both, "eve+again%d@stranger.example"); len(again) != 0 {
		t.Errorf("the address again: %d invitations were created, want none", len(again))
	}
	many := append(inviteAll(both[:1], "red-%d@stranger.example"), inviteAll(both[1:], "blue-%d@stranger.example")...)
	if len(many) != 2*daily-len(one) { // the one address counts for its organization
		t.Errorf("many addresses: %d invitations were created, want %d", len(many), 2*daily-len(one))
	}
	for _, to := range append(one, many...) {
		box.AwaitToken(to)
	}
	if n := box.Count("@stranger.example"); n != 0 {
		t.Errorf("%d mails were sent without a created invitation", n)
	}
}
