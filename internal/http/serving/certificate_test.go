package serving_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/serving"
)

// pair creates a certificate with a serial number and its key, in PEM.
func pair(t *testing.T, serial int64, until time.Time) (chain, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "log.test"},
		DNSNames: []string{"log.test"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// files contains a certificate and key on disk, and a clock that the test moves.
type files struct {
	*testing.T
	chain, key string
	now        time.Time
	log        bytes.Buffer
}

func newFiles(t *testing.T) *files {
	dir := t.TempDir()
	return &files{T: t, chain: filepath.Join(dir, "chain.pem"), key: filepath.Join(dir, "key.pem"), now: time.Now()}
}

// write writes the files and moves the clock to the next check.
func (f *files) write(chain, key []byte) {
	f.Helper()
	f.now = f.now.Add(time.Second)
	for name, content := range map[string][]byte{f.chain: chain, f.key: key} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			f.Fatal(err)
		}
		if err := os.Chtimes(name, f.now, f.now); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *files) open() (*serving.CertificateFiles, error) {
	logger := slog.New(slog.NewTextHandler(&f.log, nil))
	return serving.OpenCertificateFiles(f.chain, f.key, logger, func() time.Time { return f.now })
}

func serialOf(t *testing.T, s serving.CertificateSource) int64 {
	t.Helper()
	c, err := s.Certificate(&tls.ClientHelloInfo{ServerName: "log.test"})
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf.SerialNumber.Int64()
}

func TestFilesAtTheStart(t *testing.T) {
	chain, key := pair(t, 1, time.Now().Add(time.Hour))
	_, other := pair(t, 2, time.Now().Add(time.Hour))
	for name, tc := range map[string]struct {
		chain, key []byte
		want       string
	}{
		"good":        {chain, key, ""},
		"another key": {chain, other, "private key does not match"},
		"no chain":    {nil, key, "failed to find any PEM data"},
		"half a key":  {chain, key[:len(key)/2], "failed to find any PEM data"},
	} {
		f := newFiles(t)
		f.write(tc.chain, tc.key)
		_, err := f.open()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), string(key[30:60])) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
	if _, err := newFiles(t).open(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without files: got %v", err)
	}
}

// Changed files are served within a second, and invalid ones never.
func TestFilesChange(t *testing.T) {
	f := newFiles(t)
	until := f.now.Add(24 * time.Hour)
	first, firstKey := pair(t, 1, until)
	second, secondKey := pair(t, 2, until.Add(time.Hour))
	over, overKey := pair(t, 3, f.now.Add(-time.Hour))
	f.write(first, firstKey)
	s, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name       string
		chain, key []byte
		want       int64
		logged     string
	}{
		{"the same", first, firstKey, 1, "certificate read"},
		{"half written", second[:len(second)/2], secondKey, 1, "can't be used"},
		{"of another key", second, firstKey, 1, "can't be used"},
		{"renewed", second, secondKey, 2, "certificate read"},
		{"over", over, overKey, 2, "can't be used"},
		{"back", first, firstKey, 1, "certificate read"},
	} {
		f.log.Reset()
		f.write(step.chain, step.key)
		if got := serialOf(t, s); got != step.want || !strings.Contains(f.log.String(), step.logged) {
			t.Errorf("%s: got %d, log %s; want %d, %q", step.name, got, &f.log, step.want, step.logged)
		}
	}
	if got := s.Expiry(); got.Unix() != until.Unix() {
		t.Errorf("expiry: got %v, want %v", got, until)
	}
	f.now = f.now.Add(time.Hour)
	if err := os.Remove(f.key); err != nil {
		t.Fatal(err)
	}
	if got := serialOf(t, s); got != 1 {
		t.Errorf("after the key was removed: got %d", got)
	}
}

// A handshake uses TLS 1.2 or later, and HTTP/1.1.
func TestHandshake(t *testing.T) {
	f := newFiles(t)
	f.write(pair(t, 1, f.now.Add(time.Hour)))
	s, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", serving.TLSConfig(s))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				_ = c.(*tls.Conn).Handshake()
				_ = c.Close()
			}(c)
		}
	}()
	for name, tc := range map[string]struct {
		newest uint16
		ok     bool
	}{"1.3": {tls.VersionTLS13, true}, "1.2": {tls.VersionTLS12, true}, "1.1": {tls.VersionTLS11, false}} {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
			MaxVersion: tc.newest, NextProtos: []string{"h2", "http/1.1"}})
		if (err == nil) != tc.ok {
			t.Errorf("TLS %s: got %v, want ok %v", name, err, tc.ok)
		}
		if err == nil {
			if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
				t.Errorf("TLS %s: got protocol %q", name, got)
			}
			_ = c.Close()
		}
	}
}
