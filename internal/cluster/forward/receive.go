package forward

import (
	"context"
	"crypto/tls"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/internal/cluster"
)

type hopKey struct{}

// Passed reports whether a request came from another node.
func Passed(ctx context.Context) bool { return ctx.Value(hopKey{}) != nil }

// Receive returns the handler of the internal listener, which only nodes can reach. It restores the facts about the
// client's connection and passes the request to h. It rejects a request that no node has passed.
func (p *Proxy) Receive(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header[hopRemote]) != 1 {
			http.Error(w, "Not a request of a node", http.StatusForbidden)
			return
		}
		if _, err := cluster.ParseProtocol(r.Header.Get(hopProtocol)); err != nil {
			w.Header()[hopRefused] = []string{"1"}
			w.Header()[hopProtocol] = []string{err.Error()}
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		p.nameNode(w)
		h.ServeHTTP(w, restore(r))
	})
}

// Expose returns the handler of a listener that other clients can reach. It removes the headers of hops from requests.
func (p *Proxy) Expose(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dropHop(r.Header)
		p.nameNode(w)
		h.ServeHTTP(w, r)
	})
}

func (p *Proxy) nameNode(w http.ResponseWriter) {
	w.Header()[NodeHeader] = []string{p.view.Self().ID.String()}
}

func dropHop(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, hopPrefix) {
			delete(h, name)
		}
	}
}

// restore returns a passed request as the passing node received it.
func restore(r *http.Request) *http.Request {
	h := r.Header
	var seen uint64
	if len(h[hopEpoch]) > 0 {
		seen, _ = strconv.ParseUint(h[hopEpoch][0], 10, 64) // anything else is 0, which is not an epoch
	}
	r = r.WithContext(context.WithValue(r.Context(), hopKey{}, cluster.Epoch(seen)))
	r.RemoteAddr = h[hopRemote][0]
	r.TLS = nil
	if len(h[hopSecure]) > 0 {
		r.TLS = &tls.ConnectionState{}
	}
	dropHop(h)
	return r
}
