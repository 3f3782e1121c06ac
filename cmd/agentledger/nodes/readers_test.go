package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Readers of a node see no error and no smaller tree while the owner of the log is killed or suspended and continues.
// The neighbor's readers notice nothing either, and both logs accept events afterwards.
func TestReadersWithoutOwner(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := &readers{t: t, sizes: map[string]uint64{}}
	for range 2 {
		w.processes = append(w.processes, startProcess(t, server.URL()))
	}
	time.Sleep(2 * time.Second) // the nodes find each other, and shards move for the last time
	first := servicetest.At(t, w.processes[0].main, w.processes[0].identity)
	w.organizations = []*servicetest.Organization{
		first.Found("Red", "red", "ann@red.example"), first.Found("Blue", "blue", "bob@blue.example"),
	}
	for _, o := range w.organizations {
		w.mustSend(o, "before")
	}
	w.notePaths()
	for name, fault := range map[string]struct{ begin, end func(*process) }{
		"killed": {(*process).kill, (*process).start},
		"paused": {func(p *process) { p.signal(syscall.SIGSTOP) }, func(p *process) { p.signal(syscall.SIGCONT) }},
	} {
		owner, other := w.ownerOf("red")
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for _, o := range w.organizations {
			group.Go(func() { w.send(ctx, o, name) })
			group.Go(func() { w.poll(ctx, o.Slug, owner, other) })
		}
		time.Sleep(500 * time.Millisecond)
		fault.begin(owner)
		w.readAll(other)
		time.Sleep(2 * time.Second)
		fault.end(owner)
		time.Sleep(time.Second)
		stop()
		group.Wait()
		t.Logf("%s: %d heads, longest wait %v", name, w.heads.Swap(0), time.Duration(w.longest.Swap(0)))
		for _, o := range w.organizations {
			w.mustSend(o, name+"-after")
		}
		time.Sleep(2 * time.Second) // shards move back
	}
}

// readers is the state of a run.
type readers struct {
	t             *testing.T
	processes     []*process
	organizations []*servicetest.Organization

	mu      sync.Mutex
	sizes   map[string]uint64 // that were seen, by slug
	paths   []string          // of all public reads of both organizations
	heads   atomic.Int64
	longest atomic.Int64
}

// get returns the response of a node.
func get(ctx context.Context, p *process, path string, timeout time.Duration) (status int, node string, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.main+path, nil)
	if err != nil {
		return 0, "", nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header.Get(forward.NodeHeader), body, err
}

func headPath(slug string) string { return "/v1/public/orgs/" + slug + "/transparency/head" }

// notePaths records a path of each public read.
func (w *readers) notePaths() {
	for _, o := range w.organizations {
		slug, log := "/v1/public/orgs/"+o.Slug, "/o/"+o.ID
		_, _, document, err := get(w.t.Context(), w.processes[0], "/v1/public/agents/"+o.Agent.AgentID+"/did", time.Minute)
		var did struct {
			ID string `json:"id"`
		}
		if err == nil {
			err = json.Unmarshal(document, &did)
		}
		if err != nil || did.ID == "" {
			w.t.Fatalf("DID document: %v: %s", err, document)
		}
		_, _, bundle, err := get(w.t.Context(), w.processes[0], slug+"/verify/before", time.Minute)
		var event struct {
			Hash string `json:"event_hash"`
		}
		if err == nil {
			err = json.Unmarshal(bundle, &event)
		}
		if err != nil || event.Hash == "" {
			w.t.Fatalf("bundle: %v: %s", err, bundle)
		}
		found := "/find?log=" + o.Slug + "&event="
		w.paths = append(w.paths, found+event.Hash, found+"0", found+"before", slug+"/transparency/head", slug+"/transparency/checkpoint",
			slug+"/transparency/checkpoint?cosigned=1", slug+"/transparency/inclusion?log_index=0&tree_size=1",
			slug+"/transparency/consistency?from=0&to=1", slug+"/transparency/keys", slug+"/transparency/policy",
			slug+"/verify/before?verify=1", log+"/checkpoint", log+"/tile/0/000.p/1", log+"/tile/entries/000.p/1",
			"/v1/public/agents/"+o.Agent.AgentID+"/did", "/v1/public/agents/"+o.Agent.AgentID+"/did.json",
			"/v1/public/did/"+did.ID)
	}
	w.readAll(w.processes[0])
	w.readAll(w.processes[1])
}

// readAll makes each public read at a node, all at once.
func (w *readers) readAll(p *process) {
	var group sync.WaitGroup
	for _, path := range w.paths {
		group.Go(func() {
			if status, _, body, err := get(w.t.Context(), p, path, time.Minute); err != nil || status != http.StatusOK {
				w.t.Errorf("%s: got %d %s, %v", path, status, body, err)
			}
		})
	}
	group.Wait()
}

// ownerOf returns the node that answers for an organization, and another one.
func (w *readers) ownerOf(slug string) (owner, other *process) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		_, by, _, _ := get(w.t.Context(), w.processes[0], headPath(slug), time.Minute)
		for i, p := range w.processes {
			_, node, _, err := get(w.t.Context(), p, "/livez", time.Minute)
			if err == nil && node == by {
				return p, w.processes[1-i]
			}
		}
	}
	w.t.Fatalf("no node owns %s", slug)
	return nil, nil
}

// poll reads heads of an organization, alternately from a node that runs and one that may not.
func (w *readers) poll(ctx context.Context, slug string, owner, other *process) {
	for ctx.Err() == nil {
		began := time.Now()
		status, node, body, err := get(ctx, other, headPath(slug), time.Minute)
		if ctx.Err() != nil {
			return
		}
		w.longest.Store(max(w.longest.Load(), int64(time.Since(began))))
		if err != nil || status != http.StatusOK {
			w.t.Errorf("%s: got %d %s, %v", slug, status, body, err)
			return
		}
		w.see(slug, node, body)
		if status, node, body, err = get(ctx, owner, headPath(slug), 200*time.Millisecond); err == nil && status == http.StatusOK {
			w.see(slug, node, body)
		}
		time.Sleep(15 * time.Millisecond)
	}
}

// see checks that a head is not smaller than an earlier one.
func (w *readers) see(slug, node string, body []byte) {
	var head struct {
		Size uint64 `json:"tree_size"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		w.t.Errorf("%s: %q: %v", slug, body, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if head.Size < w.sizes[slug] {
		w.t.Errorf("%s: node %s shows size %d after %d", slug, node, head.Size, w.sizes[slug])
	}
	w.sizes[slug] = head.Size
	w.heads.Add(1)
}

func (w *readers) client(p *process, o *servicetest.Organization) *client.Client {
	c, err := client.New(client.Config{BaseURL: p.main, Token: o.IngestKey.Secret, Timeout: 2 * time.Second,
		Retry: client.Retry{Attempts: 1}})
	if err != nil {
		w.t.Error(err)
	}
	return c
}

// send sends events to any node until ctx ends. Some are lost.
func (w *readers) send(ctx context.Context, o *servicetest.Organization, name string) {
	clients := []*client.Client{w.client(w.processes[0], o), w.client(w.processes[1], o)}
	for n := 0; ctx.Err() == nil; n++ {
		_, _ = clients[n%2].Send(ctx, o.Sign(fmt.Sprintf("%s-%d", name, n), nil))
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *readers) mustSend(o *servicetest.Organization, name string) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := w.client(w.processes[0], o).Send(w.t.Context(), o.Sign(name, nil))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal(err)
		}
	}
}
