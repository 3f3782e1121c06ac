package nodes

import (
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/internal/cluster/exchange"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/serving"
)

// surfaceHeader names the listener of a request unless it is the main one. Clients can't set it.
const surfaceHeader = "X-Agentledger-Surface"

const identitySurface = "identity"

// PassFrom makes an edge forward requests for organizations that other nodes own.
func (n *Node) PassFrom(e *edge.Edge) {
	if n != nil {
		e.Passer = n.proxy
	}
}

// Expose returns the handler of the main listener.
func (n *Node) Expose(h http.Handler) http.Handler { return n.expose(h, "") }

// ExposeIdentity returns the handler of the identity listener.
func (n *Node) ExposeIdentity(h http.Handler) http.Handler { return n.expose(h, identitySurface) }

// expose records the listener in each request, for the owner that it may be forwarded to.
func (n *Node) expose(h http.Handler, surface string) http.Handler {
	if n == nil {
		return h
	}
	return n.proxy.Expose(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(surfaceHeader)
		if surface != "" {
			r.Header.Set(surfaceHeader, surface)
		}
		h.ServeHTTP(w, r)
	}))
}

// Surface returns the internal listener. main and identity are the handlers of the two listeners.
func (n *Node) Surface(name, address string, main, identity http.Handler, connections int) serving.Surface {
	if n == nil {
		return serving.Surface{}
	}
	main, identity = n.proxy.Receive(main), n.proxy.Receive(identity)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch surface := r.Header.Get(surfaceHeader); {
		case strings.HasPrefix(r.URL.Path, exchange.Prefix):
			n.exchange.ServeHTTP(w, r)
		case surface == identitySurface:
			r.Header.Del(surfaceHeader)
			identity.ServeHTTP(w, r)
		default:
			main.ServeHTTP(w, r)
		}
	})
	return serving.Surface{Name: name, Address: address, Handler: handler, Connections: connections,
		TLS: n.identity.Server(), Header: forward.HeaderBytes(serving.MaxHeader)}
}
