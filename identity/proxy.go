package identity

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
)

// ProxyNotice warns once per process if the service runs behind a proxy but no setting names the header in which the
// proxy passes the client's address. Without that header all clients share one address, so one client that guesses
// passwords uses up the attempts of all.
type ProxyNotice struct {
	logger *slog.Logger
	warned atomic.Bool
}

// NewProxyNotice returns nil if the settings name a header. It warns at once if the public URL is https, because then
// a proxy terminates TLS, unless the main listener itself does (ownTLS).
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

// WatchHeaders inspects the headers of requests until the warning was given.
func (n *ProxyNotice) WatchHeaders(next http.Handler) http.Handler {
	if n == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !n.warned.Load() {
			n.checkHeaders(r.Header)
		}
		next.ServeHTTP(w, r)
	})
}

func (n *ProxyNotice) checkHeaders(h http.Header) {
	// Proxies pass the client's address in these headers.
	for _, name := range [...]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if len(h[name]) > 0 {
			n.warnOnce("a request came with " + name)
			return
		}
	}
}

func (n *ProxyNotice) warnOnce(sign string) {
	if n.warned.CompareAndSwap(false, true) {
		n.logger.Warn("a proxy seems to stand before the service, and --client-address-header does not name "+
			"its header: sign-in attempts and guesses of the platform secret are counted for the proxy, "+
			"not for the client", "sign", sign)
	}
}
