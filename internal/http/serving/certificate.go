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

// CertificateSource returns the certificates for connections. It may be used concurrently.
type CertificateSource interface {
	// Certificate returns the certificate for a new connection.
	Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Expiry returns when the latest certificate that was served expires. If none has been served, it is zero.
	Expiry() time.Time
}

// TLSConfig returns the TLS configuration of a listener. protocols are ALPN protocols in addition to HTTP/1.1.
func TLSConfig(s CertificateSource, protocols ...string) *tls.Config {
	return &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12,
		NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// CertificateFiles is a CertificateSource that reads a certificate chain and its private key from PEM files. Changed files
// are served within a second, without a restart and without a lost connection. If the files cannot be used when they are
// opened, that is an error. If they cannot be used later, that is logged, and the last valid certificate is still served.
type CertificateFiles struct {
	certificate, key string
	logger           *slog.Logger
	now              func() time.Time

	mu      sync.Mutex
	served  *tls.Certificate
	version [2]version
	checked time.Time // when the files were last checked
}

// version detects a change of a file.
type version struct {
	changed time.Time
	size    int64
}

// lookEvery is the minimum time between two checks of the files. New connections trigger them.
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

// Certificate implements CertificateSource.
func (f *CertificateFiles) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= lookEvery {
		f.checked = now
		f.reload()
	}
	return f.served, nil
}

// Expiry implements CertificateSource.
func (f *CertificateFiles) Expiry() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served.Leaf.NotAfter
}

// reload reads the files again if one has changed. The caller must hold f.mu.
func (f *CertificateFiles) reload() {
	seen, err := f.readVersions()
	if err == nil && seen == f.version {
		return
	}
	if err == nil {
		err = f.load(seen)
	}
	if err != nil {
		f.logger.Warn("the changed certificate can't be used; the previous one is still served", "err", err)
		return
	}
	f.logger.Info("certificate read", "expires", f.served.Leaf.NotAfter)
}

// load reads the files, whose versions are seen. The caller must hold f.mu unless it has the only reference to f.
func (f *CertificateFiles) load(seen [2]version) error {
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return err
	}
	if f.served != nil && pair.Leaf.NotAfter.Before(f.now()) && f.served.Leaf.NotAfter.After(f.now()) {
		return errors.New("the new certificate has expired, and the previous one has not")
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
