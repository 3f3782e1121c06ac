package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/config"
)

// writePair writes a certificate for log.test, which expires after a duration, and its key.
func writePair(t *testing.T, ends time.Duration) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"log.test"},
		NotBefore: time.Now().Add(-100 * 24 * time.Hour), NotAfter: time.Now().Add(ends)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	chain, key = filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return chain, key
}

func TestCertificate(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		ends time.Duration
		url  string
		want []string
	}{
		"good":         {15 * day, "https://log.test", []string{"good: fits its key and log.test"}},
		"ends soon":    {13 * day, "https://log.test", []string{"attention: it ends at"}},
		"over":         {-day, "https://log.test", []string{"attention: it ended at"}},
		"another host": {15 * day, "https://other.test", []string{"attention: not for other.test"}},
		"both":         {-day, "https://other.test", []string{"attention: not for other.test", "attention: it ended"}},
	} {
		c := config.Serve{Identity: config.Identity{PublicURL: tc.url}}
		c.TLSCert, c.TLSKey = writePair(t, tc.ends)
		want(t, name, checkCertificate(t.Context(), c), tc.want...)
	}
	c := config.Serve{Identity: config.Identity{PublicURL: "https://log.test"}}
	c.TLSCert, _ = writePair(t, 15*day)
	_, c.TLSKey = writePair(t, 15*day)
	want(t, "another key", checkCertificate(t.Context(), c), "attention: private key does not match")
	c.TLSCert = c.TLSKey + "x"
	want(t, "no file", checkCertificate(t.Context(), c), "attention: no such file")
	want(t, "none", checkCertificate(t.Context(), config.Serve{}), "good: none")
	want(t, "ACME", checkCertificate(t.Context(), config.Serve{ACME: config.ACME{Directory: "https://acme.test"}}), "good: acme.test")
}
