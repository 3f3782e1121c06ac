// Package certificate gives the TLS listeners of the service their certificates: from two files, or from an ACME server
// (RFC 8555).
//
// Invariants:
//
//   - A pair of files that can't be used at the start is an error. One that can't be used later is logged, and the last
//     good one goes on to be served.
//   - Changed files are served within a second of their change, without a restart and without a lost connection.
//   - A private key is in memory and in the files of the operator, and in no log line.
//   - TLS 1.2 is the oldest version.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Source gives certificates to connections. It may be used concurrently.
type Source interface {
	// Certificate returns the certificate for a connection that begins.
	Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Expiry returns when the newest certificate that was served is over; zero for none yet.
	Expiry() time.Time
}

// Config returns the TLS settings of a listener. Protocols are those of ALPN besides HTTP/1.1.
func Config(s Source, protocols ...string) *tls.Config {
	return &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12,
		NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// Files are a certificate chain and its private key, both in PEM.
type Files struct {
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

// OpenFiles reads a certificate chain and its private key.
func OpenFiles(certificate, key string, logger *slog.Logger, now func() time.Time) (*Files, error) {
	f := &Files{certificate: certificate, key: key, logger: logger, now: now, checked: now()}
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
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= lookEvery {
		f.checked = now
		f.reload()
	}
	return f.served, nil
}

// Expiry implements Source.
func (f *Files) Expiry() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served.Leaf.NotAfter
}

// reload reads the files again if one was changed. The caller holds f.mu.
func (f *Files) reload() {
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
func (f *Files) load(seen [2]version) error {
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

func (f *Files) readVersions() (seen [2]version, err error) {
	for i, name := range []string{f.certificate, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			return seen, err
		}
		seen[i] = version{info.ModTime(), info.Size()}
	}
	return seen, nil
}
