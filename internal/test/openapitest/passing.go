package openapitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// Passer is the Passer of an edge whose node owns every organization. It checks that a surface follows the rules for
// several nodes: an operation that names an organization looks up its owner exactly once, before it reads the body, and
// any other operation never does. If another node is the owner, the request is passed on unread.
type Passer struct{}

// Passer returns the passer for the edge of the surface under test.
func (f *Traffic) Passer() Passer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passing = true
	return Passer{}
}

// ownership records the owner lookups of one request.
type ownership struct {
	readSoFar func() int // bytes of the body; nil for none
	elsewhere bool       // another node owns each organization
	lookups   []id.Tenant
	late      bool // a lookup came after the body was partly read
	passed    int
}

type ownershipKey struct{}

func withOwnership(ctx context.Context, o *ownership) context.Context {
	return context.WithValue(ctx, ownershipKey{}, o)
}

// Owns records the lookup.
func (Passer) Owns(ctx context.Context, t id.Tenant) bool {
	o, watched := ctx.Value(ownershipKey{}).(*ownership)
	if !watched {
		return true
	}
	o.lookups = append(o.lookups, t)
	o.late = o.late || o.readSoFar != nil && o.readSoFar() > 0
	return !o.elsewhere
}

// Pass answers as another node would.
func (Passer) Pass(w http.ResponseWriter, r *http.Request, _ *admission.Elsewhere) (bool, error) {
	o, watched := r.Context().Value(ownershipKey{}).(*ownership)
	if !watched {
		return false, errors.New("passed on a request of no test")
	}
	o.passed++
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}

// namesOrganization reports whether an operation is about one organization. The directory counts as one.
func (o *operation) namesOrganization() bool {
	if strings.Contains(o.template, "{slug}") || strings.Contains(o.template, "{organization") {
		return true
	}
	prefixes := []string{"/v1/ingest/", "/workflows/", "/access/v1/", "/v1/console/", "/v1/public/agents/",
		"/v1/public/did/", "/v1/public/directory"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(o.template, prefix) })
}

// byBody is the operation whose body names the organization. An edge passes it on after reading the body.
const byBody = "/v1/id/invitations/accept"

// mayNameOrganization reports whether a query or body of an operation may name an organization.
func (o *operation) mayNameOrganization() bool {
	if o.template == byBody {
		return true
	}
	return slices.ContainsFunc(o.parameters, func(p node) bool { return p.member("name").text() == "log" })
}

// maxLookups returns how many owner lookups an operation may make. A public key may belong to several organizations,
// each of which is looked up once.
func (o *operation) maxLookups(lookups []id.Tenant) int {
	switch {
	case o.template == "/v1/public/did/{did}":
		return len(slices.Compact(slices.Sorted(slices.Values(lookups))))
	case o.namesOrganization() || o.mayNameOrganization():
		return 1
	}
	return 0
}

// checkOwnership returns the problems of an exchange's owner lookups.
func (f *Traffic) checkOwnership(d *document, x exchange, is *ownership) (problems []string) {
	o, _, found := d.findOperation(x.request)
	if !found || !f.passes() || o.isPreflight() {
		return nil
	}
	got, limit := len(is.lookups), o.maxLookups(is.lookups)
	if got > limit || got == 0 && o.namesOrganization() && x.status < 400 {
		problems = append(problems, fmt.Sprintf("%s looked up the owners %v, want %d lookups",
			o.id, is.lookups, limit))
	}
	if is.late && o.template != byBody {
		problems = append(problems, o.id+" looked up the owner after it had begun to read the body")
	}
	return problems
}

func (f *Traffic) passes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passing
}

// checkPassing repeats a successful request as if another node owned its organization. It does so until each operation
// was passed on once.
func (f *Traffic) checkPassing(d *document, x exchange, next http.Handler) []string {
	o, _, found := d.findOperation(x.request)
	if !found || x.status >= 400 || !o.namesOrganization() || o.isPreflight() || !f.isDue(o.id) {
		return nil
	}
	is, unread := &ownership{elsewhere: true}, &unreadBody{}
	r := x.request.Clone(withOwnership(x.request.Context(), is))
	r.Body = unread
	w := httptest.NewRecorder()
	next.ServeHTTP(w, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case unread.touched:
		return []string{o.id + " read the body although another node owns the organization"}
	case w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden || w.Code == http.StatusNotFound:
		return nil // the request itself has ended the right to it
	case is.passed != 1 || w.Code != http.StatusNoContent:
		return []string{fmt.Sprintf("%s was passed %d times: %d %s", o.id, is.passed, w.Code, w.Body)}
	}
	f.passed[o.id] = true
	return nil
}

func (f *Traffic) isDue(operation string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passing && !f.passed[operation]
}

// unreadBody is a body that must not be read.
type unreadBody struct{ touched bool }

// Read implements io.Reader.
func (b *unreadBody) Read([]byte) (int, error) {
	b.touched = true
	return 0, io.ErrUnexpectedEOF
}

// Close implements io.Closer.
func (b *unreadBody) Close() error { return nil }

// listUnpassed lists the operations about an organization that were never passed on. The caller holds f.mu.
func (f *Traffic) listUnpassed(d *document) (missing []string) {
	for _, o := range d.operations() {
		if f.passing && slices.Contains(f.tags, o.tag) && o.namesOrganization() && !f.passed[o.id] && !o.isPreflight() {
			missing = append(missing, o.id+" on a node without the organization")
		}
	}
	return missing
}

func (o *operation) isPreflight() bool { return strings.HasSuffix(o.node.pointer, "/options") }
