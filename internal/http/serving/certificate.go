package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// CertificateSource gives certificates to connections. It may be used concurrently.
type CertificateSource interface {
	// Certificate returns the certificate for a connection that begins.
	Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Expiry returns when the newest certificate that was served is over; zero for none yet.
	Expiry() time.Time
}

// TLSConfig returns the TLS settings of a listener. Protocols are those of ALPN besides HTTP/1.1.
func TLSConfig(s CertificateSource, protocols ...string) *tls.Config {
	return &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12,
		NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// CertificateFiles are a certificate chain and its private key, both in PEM.
type CertificateFiles struct {
	certificate, key string
	logger           *slog.Logger
	now              func() time.Time

	mu      sync.Mutex
	served  *tls.Certificate
	version [2]version
	checked time.Time // when the files were looked at
}

// version tells a change of a file.
type version struct {
	changed time.Time
	size    int64
}

// lookEvery is how often the files are looked at, while connections begin.
const lookEvery = time.Second

// OpenCertificateFiles reads a certificate chain and its private key.
func OpenCertificateFiles(certificate, key string, logger *slog.Logger, now func() time.Time) (*CertificateFiles, error) {
	f := &CertificateFiles{certificate: certificate, key: key, logger: logger, now: now, checked: now()}
	seen, err := f.readVersions()
	if err == nil {
		err = f.load(seen)
	}
	if err != nil {
		return nil, fmt.Errorf("open certificate: %w", err)
	}
	return f, nil
}

// Certificate implements Source.
func (f *CertificateFiles) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= lookEvery {
		f.checked = now
		f.reload()
	}
	return f.served, nil
}

// Expiry implements Source.
func (f *CertificateFiles) Expiry() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served.Leaf.NotAfter
}

// reload reads the files again if one was changed. The caller holds f.mu.
func (f *CertificateFiles) reload() {
	seen, err := f.readVersions()
	if err == nil && seen == f.version {
		return
	}
	if err == nil {
		err = f.load(seen)
	}
	if err != nil {
		f.logger.Warn("the changed certificate can't be used; the one before is served", "err", err)
		return
	}
	f.logger.Info("certificate read", "expires", f.served.Leaf.NotAfter)
}

// load reads the files of the versions that were seen before. The caller holds f.mu, or is alone.
func (f *CertificateFiles) load(seen [2]version) error {
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return err
	}
	if f.served != nil && pair.Leaf.NotAfter.Before(f.now()) && f.served.Leaf.NotAfter.After(f.now()) {
		return errors.New("the new certificate is over, and the one before is not")
	}
	f.served, f.version = &pair, seen
	return nil
}

func (f *CertificateFiles) readVersions() (seen [2]version, err error) {
	for i, name := range []string{f.certificate, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			return seen, err
		}
		seen[i] = version{info.ModTime(), info.Size()}
	}
	return seen, nil
}
