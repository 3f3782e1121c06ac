package nodes_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// The link that any node prints works at each other node, and all links together create one organization.
func TestSetupAtAnyNode(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	one, two := startProcess(t, server.URL()), startProcess(t, server.URL())
	void, valid := one.token, two.token
	one.terminate()
	one.start()
	tokens := map[string]bool{void: true, valid: true, one.token: true}
	if len(tokens) != 3 || tokens[""] {
		t.Fatalf("tokens %v", tokens)
	}
	for _, p := range []*process{one, two} {
		for name, token := range map[string]string{"none": "", "of the run before": void} {
			if status, body := setUp(p, token, "red", "a password for tests"); status != http.StatusUnauthorized {
				t.Errorf("%s: got %d %s", name, status, body)
			}
		}
		if status, body := setUp(p, valid, "red", "1234567890"); status != http.StatusUnprocessableEntity {
			t.Errorf("a common password: got %d %s", status, body)
		}
	}
	answers := map[int]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() { // each node gets the token of the other
			p, token := one, valid
			if n%2 == 1 {
				p, token = two, one.token
			}
			status, body := setUp(p, token, fmt.Sprint("red-", n), "a password for tests")
			for tries := 0; status == http.StatusServiceUnavailable && tries < setupTries; tries++ {
				time.Sleep(100 * time.Millisecond) // the node may have no organizations yet, or the other one may be setting up
				status, body = setUp(p, token, fmt.Sprint("red-", n), "a password for tests")
			}
			if status != http.StatusCreated && status != http.StatusConflict {
				t.Errorf("got %d %s", status, body)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	group.Wait()
	if answers[http.StatusCreated] != 1 {
		t.Errorf("responses by status: %v", answers)
	}
	for token := range tokens {
		for _, p := range []*process{one, two} {
			if status, body := setUp(p, token, "blue", "a password for tests"); status != http.StatusConflict {
				t.Errorf("after the setup: got %d %s", status, body)
			}
		}
	}
	two.terminate()
	if two.start(); two.token != "" {
		t.Error("a link was printed although the service is set up")
	}
	for n := range 8 {
		slug := fmt.Sprint("red-", n)
		if status, _, _, err := get(t.Context(), two, headPath(slug), time.Minute); err == nil && status == http.StatusOK {
			answers[status]++
		}
	}
	if answers[http.StatusOK] != 1 {
		t.Errorf("%d organizations were created", answers[http.StatusOK])
	}
}

// setupTries bounds how often a setup is retried, as the response requests.
const setupTries = 300

// setUp creates the first organization at a node.
func setUp(p *process, token, slug, password string) (status int, body string) {
	return post(p.main+"/v1/id/setup", fmt.Sprintf(
		`{"token":%q,"organization":{"name":"Red","slug":%q},"email":%q,"password":%q}`, token, slug, slug+"@test.example", password))
}
