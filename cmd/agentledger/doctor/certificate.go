package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/status"
)

// checkCertificate reads the files of the main listener's certificate.
func checkCertificate(_ context.Context, c config.Serve) []Finding {
	switch {
	case c.ACME.Directory != "":
		return []Finding{good("the ACME server %s gives it; port 443 of the host must lead to the main listener",
			c.ACME.Directory)}
	case c.TLSCert == "":
		return []Finding{good("none is configured")}
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return []Finding{attend("give the chain and the private key of one certificate, in PEM", "%v", err)}
	}
	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return []Finding{attend("look at --public-url", "%v", err)}
	}
	return judgeCertificate(pair.Leaf, public.Hostname(), time.Now())
}

func judgeCertificate(leaf *x509.Certificate, host string, now time.Time) (found []Finding) {
	ends := leaf.NotAfter.UTC().Format(time.RFC3339)
	if err := leaf.VerifyHostname(host); err != nil {
		found = append(found, attend("get one for the host of --public-url", "it is not for %s", host))
	}
	switch {
	case now.After(leaf.NotAfter):
		found = append(found, attend("renew it", "it ended at %s", ends))
	case now.Before(leaf.NotBefore):
		found = append(found, attend("look at the clock", "it begins at %s", leaf.NotBefore.UTC().Format(time.RFC3339)))
	case leaf.NotAfter.Sub(now) < status.CertificateLow:
		found = append(found, attend("renew it: changed files are served within a second", "it ends at %s", ends))
	}
	if len(found) == 0 {
		found = append(found, good("it fits its key and %s, and ends at %s", host, ends))
	}
	return found
}
