package nodes_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Organizations are created at a node while shards move back and forth. Each call succeeds, and both nodes show each
// log afterwards.
func TestFoundingWhileShardsMove(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	one, two := startProcess(t, server.URL()), startProcess(t, server.URL())
	done := make(chan struct{})
	var founded []string
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			slug := fmt.Sprint("org-", n)
			if status, body := found(one, slug); status != http.StatusCreated {
				t.Errorf("%s: got %d %s", slug, status, body)
			}
			founded = append(founded, slug)
		}
	})
	for range 2 {
		two.terminate()
		two.start()
		time.Sleep(500 * time.Millisecond)
	}
	close(done)
	group.Wait()
	for _, slug := range founded {
		for _, p := range []*process{one, two} {
			if status, _, body, err := get(t.Context(), p, headPath(slug), time.Minute); err != nil || status != http.StatusOK {
				t.Errorf("%s at node %s: got %d %s, %v", slug, p.main, status, body, err)
			}
		}
	}
	if status, body := found(two, founded[0]); status != http.StatusConflict {
		t.Errorf("a taken slug: got %d %s", status, body)
	}
	t.Logf("%d organizations were created", len(founded))
}

// found creates an organization at a node.
func found(p *process, slug string) (status int, body string) {
	return post(p.identity+"/v1/id/platform/organizations",
		fmt.Sprintf(`{"name":"Test","slug":%q,"admin_email":%q}`, slug, slug+"@test.example"))
}

// post makes a call as the platform, or as a user.
func post(url, text string) (status int, body string) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Platform-Secret", servicetest.Secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	all, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all)
}
