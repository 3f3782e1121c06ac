package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/serving"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// Names of the listeners.
const (
	mainListener     = "main"
	identityListener = "identity"
	metricsListener  = "metrics"
	nodeListener     = "node"
)

// certificates are the certificates of the main listener. The zero value means plain HTTP.
type certificates struct {
	source    serving.CertificateSource
	protocols []string
}

// openCertificates opens the source of certificates that the settings name.
func openCertificates(c config.Serve, watch *observation) (certificates, error) {
	var found certificates
	failures := func() uint64 { return 0 }
	switch {
	case c.TLSCert != "":
		files, err := serving.OpenCertificateFiles(c.TLSCert, c.TLSKey, watch.logger, time.Now)
		if err != nil {
			return found, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		found.source = files
	case c.ACME.Directory != "":
		public, err := url.Parse(c.PublicURL)
		if err != nil {
			return found, err
		}
		source := serving.OpenACME(c.ACME.Directory, public.Hostname(), c.ACME.Contact,
			filepath.Join(c.Data, "acme"), telemetry.WithoutRepeats(watch.logger))
		found.source, failures = source, source.Failures
		found.protocols = []string{serving.ALPN}
	default:
		return found, nil
	}
	watch.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_certificate_expires_seconds",
		Help: "Expiry of the certificate of the main listener in Unix seconds; 0 before the first certificate.",
	}, func() float64 { return float64(max(0, found.source.Expiry().Unix())) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_certificate_failures_total",
			Help: "Connections to the public host that failed because the ACME server issued no certificate.",
		}, func() float64 { return float64(failures()) }))
	return found, nil
}

// protect makes a listener use TLS if there are certificates. Its responses then have a Strict-Transport-Security header,
// unless the public host is localhost, where other services may use plain HTTP.
func (c certificates) protect(s *serving.Surface, publicURL string) {
	s.Certificate, s.Protocols = c.source, c.protocols
	if c.source == nil || config.IsLocalURL(publicURL) {
		return
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}
