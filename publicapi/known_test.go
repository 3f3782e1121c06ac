package publicapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
)

// noOwner is a node that owns nothing. Forwarded requests get 204.
type noOwner struct{}

func (noOwner) Owns(context.Context, id.Tenant) bool { return false }

func (noOwner) Pass(w http.ResponseWriter, _ *http.Request, to *admission.Elsewhere) (bool, error) {
	if !to.Public {
		w.WriteHeader(http.StatusTeapot)
		return true, nil
	}
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}

// knownStates contains the states that a node knows, by tenant.
type knownStates map[id.Tenant]*log.State

func (s knownStates) Shown(_ context.Context, t id.Tenant, within func(id.Index) bool) (*log.State, error) {
	if s[t] == nil || !within(s[t].Size()) {
		return nil, nil
	}
	return s[t], nil
}

// elsewhere returns the surface of a node that owns nothing.
func (w *world) elsewhere(known publicapi.Known) http.Handler {
	e := &edge.Edge{Passer: noOwner{}}
	router := e.Router()
	publicapi.New(publicapi.Options{
		Edge: e, Ledgers: w.ledgers, Organizations: w.orgs, Agents: w.agents,
		GrantKeys: grantKeys{}, PublicURL: publicURL, Clock: w.clock, Directory: w.directory, Known: known,
	}).Routes(router, nil)
	return router
}

// A node serves published tiles with the same bytes as the owner. It forwards everything else, including tiles that may
// be newer, tiles of another log of the line, and tiles of an organization without a known state.
func TestTilesOfOtherNodes(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseCommitment, names("e", 300)...)
	w.append(&w.blue, id.DiscloseCommitment, names("e", 300)...)
	known := knownStates{w.red.tenant: w.state(&w.red)}
	w.append(&w.red, id.DiscloseCommitment, names("later", 10)...)
	router := w.elsewhere(known)
	red, blue := "/o/"+w.red.id.String(), "/o/"+w.blue.id.String()
	for path, own := range map[string]bool{
		red + "/tile/0/000":                     true,
		red + "/tile/0/000.p/1":                 true,
		red + "/tile/0/001.p/44":                true,
		red + "/tile/1/000.p/1":                 true,
		red + "/tile/entries/000":               true,
		red + "/tile/entries/001.p/3":           true,
		red + "/tile/0/001.p/45":                false,
		red + "/tile/entries/001.p/5/":          false,
		red + "/tile/entries/001":               false,
		red + "/tile/0/000?a":                   false,
		red + "/2/tile/0/000":                   false,
		red + "/1/tile/0/000":                   false,
		red + "/checkpoint":                     false,
		red + "/successor":                      false,
		red + "/keys/00000000":                  false,
		red + "/2/keys/00000000":                false,
		blue + "/tile/0/000":                    false,
		"/v1/public/orgs/red/transparency/head": false,
		"/v1/public/orgs/red/transparency/inclusion?log_index=1&tree_size=300": false,
		"/v1/public/orgs/red/verify/e-1":                                       false,
		"/v1/public/agents/" + string(w.red.agent.Agent) + "/did":              false,
		"/v1/public/did/did:web:ledger.example%3A8443":                         true, // it names no organization
	} {
		for _, coding := range []string{"", "gzip"} {
			got := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept-Encoding", coding)
			router.ServeHTTP(got, r)
			if !own {
				if got.Code != http.StatusNoContent {
					t.Errorf("%s: got %d %s, want it passed on", path, got.Code, got.Body)
				}
				continue
			}
			want := w.do(http.MethodGet, path, "Accept-Encoding: "+coding)
			if got.Code != want.Code || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) ||
				got.Header().Get("Etag") != want.Header().Get("Etag") {
				t.Errorf("%s %s: got %d and %d bytes, want %d and %d", path, coding, got.Code, got.Body.Len(), want.Code,
					want.Body.Len())
			}
		}
	}
}

// processorTime returns the time that this process has used, in microseconds.
func processorTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

// BenchmarkTile requests a tile from the owner, and from another node that knows it.
func BenchmarkTile(b *testing.B) {
	w := newWorld(b)
	w.append(&w.red, id.DiscloseCommitment, names("e", 300)...)
	for name, h := range map[string]http.Handler{
		"owner": w.fast, "another node": w.elsewhere(knownStates{w.red.tenant: w.state(&w.red)}),
	} {
		b.Run(name, func(b *testing.B) {
			began := processorTime()
			for range b.N {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/o/"+w.red.id.String()+"/tile/0/000", nil))
			}
			b.ReportMetric((processorTime()-began)/float64(b.N), "cpu-µs/op")
		})
	}
}
