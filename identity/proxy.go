package identity

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
)

// ProxyNotice warns, once in the life of a process, that a proxy stands before the
// service and no setting names the header in which it passes the client's address on.
// Without that header all clients share one address, so one client that guesses
// passwords uses up the attempts of all.
type ProxyNotice struct {
	logger *slog.Logger
	told   atomic.Bool
}

// NewProxyNotice returns nil when the settings name a header. A public URL with https says at once that there is a
// proxy, unless the main listener speaks TLS by itself (ownTLS).
func NewProxyNotice(clientHeader, publicURL string, ownTLS bool, logger *slog.Logger) *ProxyNotice {
	if clientHeader != "" {
		return nil
	}
	n := &ProxyNotice{logger: logger}
	if !ownTLS && strings.HasPrefix(strings.ToLower(publicURL), "https://") {
		n.warnOnce("the public URL is https and the listeners speak plain HTTP")
	}
	return n
}

// WatchHeaders looks at the headers of requests until there is something to tell.
func (n *ProxyNotice) WatchHeaders(next http.Handler) http.Handler {
	if n == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !n.told.Load() {
			n.checkHeaders(r.Header)
		}
		next.ServeHTTP(w, r)
	})
}

func (n *ProxyNotice) checkHeaders(h http.Header) {
	// Proxies tell the client's address by these.
	for _, name := range [...]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if len(h[name]) > 0 {
			n.warnOnce("a request came with " + name)
			return
		}
	}
}

func (n *ProxyNotice) warnOnce(sign string) {
	if n.told.CompareAndSwap(false, true) {
		n.logger.Warn("a proxy seems to stand before the service, and --client-address-header does not name "+
			"its header: sign-in attempts and guesses of the platform secret are counted for the proxy, "+
			"not for the client", "sign", sign)
	}
}
