package serving

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ALPN is the protocol by which an ACME server proves that the host is ours (RFC 8737). A listener with ACME offers it.
const ALPN = acme.ALPNProto

// ACME gets certificates from an ACME server, and new ones 30 days before their end. The host is proved on the TLS
// listener itself, so the server must reach that listener at port 443.
type ACME struct {
	manager autocert.Manager

	mu     sync.Mutex
	expiry time.Time
}

// OpenACME returns a source of certificates of one host. Directory is a URL of the server. The account key
// and the certificates are kept in a folder, in files of mode 0600. A caller that names a server accepts its terms.
// The logger gets a line for each response that says why there is no certificate.
func OpenACME(directory, host, contact, folder string, logger *slog.Logger) *ACME {
	a := &ACME{}
	a.manager = autocert.Manager{Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(folder), Email: contact,
		HostPolicy: autocert.HostWhitelist(host), Client: &acme.Client{DirectoryURL: directory,
			HTTPClient: &http.Client{Transport: loggedTransport{logger}}}}
	return a
}

// Certificate implements Source.
func (a *ACME) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, err := a.manager.GetCertificate(hello)
	if err == nil && c.Leaf != nil && len(hello.SupportedProtos) != 1 {
		a.mu.Lock()
		a.expiry = c.Leaf.NotAfter
		a.mu.Unlock()
	}
	return c, err
}

// Expiry implements Source.
func (a *ACME) Expiry() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.expiry
}
