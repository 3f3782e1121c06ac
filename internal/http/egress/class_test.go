package egress

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
)

// closedPort returns a local address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestClassOf(t *testing.T) {
	release := make(chan struct{})
	silent := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	large := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	cut := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	cut.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	private := New(Options{Resolver: egresstest.Resolver(t, func(int) string { return "192.168.0.1" })})
	quick := New(Options{Allow: loopback, Timeout: 50 * time.Millisecond})
	c := New(Options{Allow: loopback, MaxAnswer: 10, Roots: x509.NewCertPool()})
	for name, row := range map[string]struct {
		client  *Client
		address string
		want    Class
	}{
		"a private name":          {private, "https://witness.example/", ClassAddress},
		"not to be called":        {c, "https://10.0.0.1/", ClassAddress},
		"an unknown name":         {c, "https://nobody.invalid/", ClassDNS},
		"nobody listens":          {c, "http://" + closedPort(t) + "/", ClassRefused},
		"silence":                 {quick, silent.URL, ClassTimeout},
		"a certificate of nobody": {c, secure.URL, ClassTLS},
		"no TLS there":            {c, strings.Replace(large.URL, "http:", "https:", 1), ClassConnection},
		"a large answer":          {c, large.URL, ClassTooLarge},
		"a connection that ends":  {c, cut.URL, ClassConnection},
	} {
		_, err := row.client.Get(t.Context(), row.address, nil)
		if err == nil || ClassifyError(err) != row.want {
			t.Errorf("%s: got %s of %v, want %s", name, ClassifyError(err), err, row.want)
		}
	}
}
