package serving

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ALPN is the protocol of the tls-alpn-01 challenge (RFC 8737). A listener with ACME must offer it.
const ALPN = acme.ALPNProto

// ACME obtains certificates from an ACME server, and renews them 30 days before they expire. Control of the host is proved
// on the TLS listener itself, so the server must be able to reach that listener at port 443.
type ACME struct {
	manager  autocert.Manager
	host     string
	failures atomic.Uint64

	mu     sync.Mutex
	expiry time.Time
}

// OpenACME returns a source of certificates for one host. directory is the directory URL of the server. The account key
// and the certificates are stored in folder, in files with mode 0600. The caller accepts the terms of the server. The
// logger gets a line for each response that explains why there is no certificate.
func OpenACME(directory, host, contact, folder string, logger *slog.Logger) *ACME {
	a := &ACME{host: host}
	a.manager = autocert.Manager{Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(folder), Email: contact,
		HostPolicy: autocert.HostWhitelist(host), Client: &acme.Client{DirectoryURL: directory,
			HTTPClient: &http.Client{Transport: loggedTransport{logger}}}}
	return a
}

// Certificate implements CertificateSource.
func (a *ACME) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, err := a.manager.GetCertificate(hello)
	if err != nil && strings.EqualFold(hello.ServerName, a.host) {
		a.failures.Add(1)
	}
	if err == nil && c.Leaf != nil && len(hello.SupportedProtos) != 1 {
		a.mu.Lock()
		a.expiry = c.Leaf.NotAfter
		a.mu.Unlock()
	}
	return c, err
}

// Failures returns the number of connections to the host that got no certificate.
func (a *ACME) Failures() uint64 { return a.failures.Load() }

// Expiry implements CertificateSource.
func (a *ACME) Expiry() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.expiry
}
