// Package openapitest compares the traffic of a surface's tests with the OpenAPI document (edge.OpenAPI), in both
// directions.
//
// Invariants:
//
//   - Every answer is documented for its path and method: status, headers (all required ones and no undocumented ones),
//     media type and body. A request that was answered with success is documented as well: parameters, security, body.
//   - When all tests of a package have passed, each status of each operation of its tags was answered at least once.
//     Statuses of 500 and above belong to the edge rather than to an operation, so for each of them one operation of a
//     surface is enough.
//   - Object schemas count as closed unless they say otherwise, so undocumented members are found.
//
// A package's tests have one Traffic, wrap the handler under test in Watch, and call Main from TestMain:
//
//	var traffic = openapitest.Of("public")
//
//	func TestMain(m *testing.M) { os.Exit(traffic.Main(m)) }
package openapitest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// Traffic collects the requests and answers of the tests of one surface. Its methods may be called concurrently.
type Traffic struct {
	tags []string
	load func() (*document, error)

	mu      sync.Mutex
	seen    map[answered]bool
	passing bool            // the surface has the passer of this traffic
	passed  map[string]bool // operations that went to another node
}

// answered is an operation and a status that it was answered with.
type answered struct{ operation, status string }

// Of returns the traffic of the operations with these tags.
func Of(tags ...string) *Traffic {
	return &Traffic{
		tags: tags, seen: make(map[answered]bool), passed: make(map[string]bool),
		load: sync.OnceValues(func() (*document, error) { return parseDocument([]byte(edge.OpenAPI())) }),
	}
}

// Watch returns a handler that checks every exchange of next and fails t for an undocumented one. Benchmarks get next
// itself.
func (f *Traffic) Watch(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	if _, timed := t.(*testing.B); timed {
		return next
	}
	d, err := f.load()
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent bytes.Buffer
		owners := &ownership{readSoFar: sent.Len}
		req := r.WithContext(withOwnership(r.Context(), owners))
		if r.Body != nil {
			req.Body = tee{io.TeeReader(r.Body, &sent), r.Body}
		}
		a := &answer{ResponseWriter: w}
		next.ServeHTTP(a, req)
		x := exchange{request: r, sent: sent.Bytes(), status: a.status, header: a.header, body: a.body.Bytes()}
		problems := append(f.checkExchange(d, x), f.checkOwnership(d, x, owners)...)
		problems = append(problems, f.checkPassing(d, x, next)...)
		for _, problem := range problems {
			t.Errorf("%s %s: %d: %s", r.Method, r.URL, a.status, problem)
		}
	})
}

// checkExchange records an exchange and returns its problems.
func (f *Traffic) checkExchange(d *document, x exchange) []string {
	o, parameters, found := d.findOperation(x.request)
	if !found {
		return d.checkUnmatched(x)
	}
	f.mu.Lock()
	f.seen[answered{o.id, strconv.Itoa(x.status)}] = true
	f.mu.Unlock()
	return o.checkExchange(x, parameters)
}

// Main runs the tests. If all of them ran and passed, it checks that each documented status was seen. It returns the
// exit status.
func (f *Traffic) Main(m *testing.M) int { return f.MainOf(m.Run) }

// MainOf is Main with another function that runs the tests and returns their exit status.
func (f *Traffic) MainOf(run func() int) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	code := run()
	if code != 0 || testsFiltered() {
		return code
	}
	d, err := f.load()
	if err != nil {
		fmt.Fprintf(os.Stderr, "openapi.json: %v\n", err)
		return 1
	}
	unseen := f.listUnseen(d)
	for _, what := range unseen {
		fmt.Fprintf(os.Stderr, "openapi.json documents what no test has seen: %s\n", what)
	}
	return min(1, len(unseen))
}

// testsFiltered reports whether this run is limited to some of the tests, or to none.
func testsFiltered() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip", "test.list", "test.fuzz"}, func(name string) bool {
		set := flag.Lookup(name)
		return set != nil && set.Value.String() != ""
	})
}

// listUnseen lists the documented answers that no test received.
func (f *Traffic) listUnseen(d *document) (missing []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edge := map[string]bool{} // statuses of 500 and above: seen at all?
	for _, o := range d.operations() {
		if !slices.Contains(f.tags, o.tag) {
			continue
		}
		for _, status := range o.documentedStatuses() {
			seen := f.seen[answered{o.id, status}]
			if status >= "500" {
				edge[status] = edge[status] || seen
			} else if !seen {
				missing = append(missing, o.id+" "+status)
			}
		}
	}
	for status, seen := range edge {
		if !seen {
			missing = append(missing, "any operation "+status)
		}
	}
	missing = append(missing, f.listUnpassed(d)...)
	slices.Sort(missing)
	return missing
}
