package serving

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// Reach returns the base URL and the transport with which a program on this machine calls a listener. The
// address is a result of Set.URL: a URL, or unix:PATH for a socket.
func Reach(address string) (base string, transport http.RoundTripper) {
	path, isUnix := strings.CutPrefix(address, unixPrefix)
	if !isUnix {
		return strings.TrimRight(address, "/"), http.DefaultTransport
	}
	return "http://localhost", &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true, // no connection outlives its call, so nothing must be closed
	}
}
