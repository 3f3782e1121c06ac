package publicapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/verify"
)

// outcome is a response without the parts that differ per request.
type outcome struct {
	status int
	header string
	body   string
}

func showing(h http.Handler, method, target string, header http.Header) outcome {
	r := httptest.NewRequest(method, "/", nil)
	r.URL, _ = url.ParseRequestURI(target)
	r.Header = header.Clone()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	answer.Header().Del(edge.RequestIDHeader)
	var b strings.Builder
	_ = answer.Header().Write(&b)
	return outcome{answer.Code, b.String(), answer.Body.String()}
}

// The fast path returns the same bytes as chi.
func TestFastPathAnswersAsTheRouter(t *testing.T) {
	w, _, _ := lined(t)
	w.append(&w.red, id.DiscloseRecord, names("e", 300)...)
	tag := w.get("/v1/public/orgs/red/transparency/head").Header().Get("ETag")
	origin := url.QueryEscape(string(w.red.origin()))
	red, blue := "/o/"+w.red.id.String(), "/o/"+w.blue.id.String()
	paths := []string{
		"/v1/public/orgs/red/transparency/head", "/v1/public/orgs/blue/transparency/head", "/v1/public/orgs/red/transparency/head?origin=" + origin,
		"/v1/public/orgs/red/transparency/head?origin=other", "/v1/public/orgs/red/transparency/head?a=1&a=2",
		"/v1/public/orgs/red/transparency/checkpoint", "/v1/public/orgs/red/transparency/checkpoint?cosigned=1", "/v1/public/orgs/red/transparency/checkpoint?cosigned=2",
		redInclusion + "?log_index=0", redInclusion + "?log_index=77&origin=" + origin, redInclusion + "?log_index=0&tree_size=1", redInclusion + "?event_id=e-5", redInclusion + "?log_index=%31",
		redInclusion, redInclusion + "?log_index=-1", redInclusion + "?log_index=9999", redInclusion + "?log_index=1&log_index=1", redInclusion + "?%zz",
		redConsistency + "?from=0", redConsistency + "?from=1&to=1", redConsistency,
		"/v1/public/orgs/red/transparency/keys", "/v1/public/orgs/red/transparency/", "/v1/public/orgs/red/transparency", "/v1/public/orgs/red",
		"/v1/public/orgs/nobody/transparency/head", "/v1/public/orgs//transparency/head", "/v1/public/orgs/red/transparency/head/", "/v1/public/orgs/re%64/transparency/head",
		"/v1/public/orgs/red%2ftransparency/head", "/v1/public/orgs/r%65d/transparency/he%61d", "/v1/public/orgs/RED/transparency/head", "/v1/public/orgs/red/x/transparency/head",
		"//v1/public/orgs/red/transparency/head", "/v1/public/orgs/./red/transparency/head", "/V1/public/orgs/red/transparency/head", "/v1/public/orgs/%zz/transparency/head",
		red + "/checkpoint", red + "/checkpoint/", red + "/checkpoint?cosigned=1", red + "/1/checkpoint", red + "/2/checkpoint", blue + "/checkpoint", red + "/successor",
		red + "/tile/0/000", red + "/tile/0/001.p/44", red + "/tile/1/000.p/1", red + "/tile/0/002", red + "/tile/0/000?", red + "/tile/0/000?a=1", red + "/tile/", red + "/tile",
		red + "/tile/0/000/", red + "/tile//0/000", red + "/tile/tile/0/000", red + "/tile/0/%30%30%30", red + "/tile%2f0/000", red + "/2/tile/0/000", blue + "/tile/0/000",
		red + "/tile/entries/000", red + "/tile/entries/001.p/44", red + "/tile/entries/002", red + "/tile/entries/", red + "/tile/entries", red + "/tile/entries/000?", red + "/tile/%65ntries/000",
		red + "/1/tile/entries/000", red + "/tile/entries/entries/000", "/o//tile/0/000", "/o/tile/tile/0/000", "/o/" + strings.ToUpper(w.red.id.String()) + "/tile/0/000", "/o/x%2f" + w.red.id.String() + "/tile/0/000",
	}
	headers := []http.Header{{}, {"If-None-Match": {tag}}, {"If-None-Match": {"*"}}, {"Accept": {"text/plain"}}, {"Accept-Encoding": {"gzip"}}}
	compared := 0
	for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "PUT", "BREW"} {
		for _, target := range paths {
			if _, err := url.ParseRequestURI(target); err != nil {
				continue // net/http lets none of those in
			}
			for _, header := range headers {
				fast, slow := showing(w.fast, method, target, header), showing(w.slow, method, target, header)
				if fast != slow {
					t.Errorf("%s %s %v:\ngot  %+v\nwant %+v", method, target, header, fast, slow)
				}
				compared++
			}
		}
	}
	if compared < 1800 {
		t.Errorf("compared %d answers only", compared)
	}
}

// Both paths have the same route in metrics.
func TestFastPathIsCountedAsTheRouter(t *testing.T) {
	w := newWorld(t)
	counted := func(fast bool) map[string]bool {
		registry := prometheus.NewRegistry()
		edge := &edge.Edge{Metrics: edge.NewMetrics(registry)}
		router := edge.Router()
		surface := publicapi.New(publicapi.Options{Edge: edge, Ledgers: w.ledgers, Organizations: w.orgs, Agents: w.agents, GrantKeys: grantKeys{}, PublicURL: publicURL})
		surface.Routes(router, nil)
		h := router.WithoutFastPath()
		if fast {
			h = router
		}
		for _, resource := range []string{"head", "checkpoint", "inclusion?log_index=0", "consistency?from=0", "keys", "none"} {
			showing(h, http.MethodGet, "/v1/public/orgs/red/transparency/"+resource, nil)
			showing(h, http.MethodGet, "/v1/public/orgs/nobody/transparency/"+resource, nil)
		}
		lines := make(map[string]bool)
		for line := range strings.Lines(showing(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "GET", "/", nil).body) {
			if strings.Contains(line, "request_seconds_count") || strings.Contains(line, "refusals_total") {
				lines[line] = true
			}
		}
		return lines
	}
	slow := counted(false)
	if fast := counted(true); !maps.Equal(fast, slow) || len(slow) < 8 {
		t.Errorf("got  %v\nwant %v", fast, slow)
	}
}

// A cached response about a head belongs to exactly this head of this log.
func TestHeadsFollowTheirLogs(t *testing.T) {
	w := newWorld(t)
	tags := make(map[string]bool)
	for round := range 3 {
		for size, o := range []*owner{&w.red, &w.blue} {
			w.append(o, id.DiscloseRecord, names(fmt.Sprint(round), 1+size)...)
			target := "/v1/public/orgs/" + string(o.slug) + "/transparency/head"
			first, again := w.get(target), w.get(target)
			head := read[verify.Head](w, target)
			if want := w.state(o); head.TreeSize != want.Size() || head.RootHash != want.Root() || head.OrganizationSlug != o.slug {
				t.Errorf("%s: got %+v, want size %d", o.slug, head, want.Size())
			}
			if first.Body.String() != again.Body.String() || first.Header().Get("ETag") != again.Header().Get("ETag") {
				t.Errorf("%s: the answer about one head changed", o.slug)
			}
			if tag := first.Header().Get("ETag"); tags[tag] {
				t.Errorf("%s: the tag %s was of another head", o.slug, tag)
			} else {
				tags[tag] = true
			}
		}
	}
	before := w.get("/v1/public/orgs/red/transparency/head").Body.String()
	if err := w.ledgers.Freeze(t.Context(), w.red.tenant, "a test"); err != nil {
		t.Fatal(err)
	}
	if after := w.get("/v1/public/orgs/red/transparency/head").Body.String(); after == before || !strings.Contains(after, `"frozen"`) {
		t.Errorf("the head of a frozen log is %s", after)
	}
}
