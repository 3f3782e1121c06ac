package cluster_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/internal/cluster"
)

type secret = [ed25519.SeedSize]byte

func identity(t *testing.T, secrets ...secret) *cluster.Identity {
	t.Helper()
	n, err := cluster.NewIdentity(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// serve starts an internal listener that counts the requests that it reads.
func serve(t *testing.T, c *tls.Config) (url string, served *atomic.Int32) {
	t.Helper()
	served = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		fmt.Fprint(w, "node")
	}))
	s.TLS, s.EnableHTTP2, s.Config.ErrorLog = c, true, log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, served
}

func ask(t *testing.T, c *tls.Config, url string) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if string(body) != "node" {
		t.Errorf("got %q", body)
	}
	return err
}

func TestNodesOfOneServiceTalk(t *testing.T) {
	old, now, foreign := secret{1}, secret{2}, secret{3}
	tests := []struct {
		name           string
		server, client []secret
		talk           bool
	}{
		{"the same key", []secret{now}, []secret{now}, true},
		{"both have both keys", []secret{now, old}, []secret{now, old}, true},
		{"in opposite order", []secret{now, old}, []secret{old, now}, true},
		{"a server that has the new key alone, and a client of both", []secret{now}, []secret{now, old}, true},
		{"a server that shows the old key to a client of the new one", []secret{old, now}, []secret{now}, false},
		{"a client that shows the new key to a server of the old one", []secret{old}, []secret{now, old}, false},
		{"another service", []secret{now}, []secret{foreign}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url, served := serve(t, identity(t, test.server...).Server())
			client := identity(t, test.client...).Client()
			for range 2 { // the second connection may resume the session of the first
				if err := ask(t, client, url); (err == nil) != test.talk {
					t.Errorf("got error %v, want a talk: %t", err, test.talk)
				}
			}
			if got := served.Load() > 0; got != test.talk {
				t.Errorf("the server read requests: %t", got)
			}
		})
	}
}

// Clients that are not nodes are rejected before a request is read.
func TestStrangersAreRefused(t *testing.T) {
	url, served := serve(t, identity(t, secret{1}).Server())
	own := identity(t, secret{1}).Client()
	for name, change := range map[string]func(*tls.Config){
		"no certificate":           func(c *tls.Config) { c.Certificates = nil },
		"a certificate of ECDSA":   func(c *tls.Config) { c.Certificates = []tls.Certificate{ecdsaCertificate(t)} },
		"the key of another":       func(c *tls.Config) { c.Certificates = stolen(t, own) },
		"an older version of TLS":  func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
		"a certificate but no key": func(c *tls.Config) { c.Certificates[0].PrivateKey = ed25519.NewKeyFromSeed(make([]byte, 32)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := identity(t, secret{1}).Client()
			if change(c); ask(t, c, url) == nil {
				t.Error("it was answered")
			}
		})
	}
	r, err := http.Get(strings.Replace(url, "https:", "http:", 1))
	if err == nil {
		defer r.Body.Close()
	}
	if err == nil && r.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP was answered with %d", r.StatusCode)
	}
	if got := served.Load(); got != 0 {
		t.Errorf("%d requests were read", got)
	}
	if err := ask(t, own, url); err != nil {
		t.Errorf("a node is refused: %v", err)
	}
}

// A client does not talk to another kind of server, whatever authorities the machine trusts.
func TestClientRefusesStrangers(t *testing.T) {
	url, served := serve(t, &tls.Config{Certificates: []tls.Certificate{ecdsaCertificate(t)}})
	if err := ask(t, identity(t, secret{1}).Client(), url); err == nil || served.Load() != 0 {
		t.Errorf("got %v, and %d requests were read", err, served.Load())
	}
	if _, err := cluster.NewIdentity(); err == nil {
		t.Error("an identity without a key")
	}
}

// stolen is the certificate of a node with the thief's own key.
func stolen(t *testing.T, of *tls.Config) []tls.Certificate {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{{Certificate: of.Certificates[0].Certificate, PrivateKey: private}}
}

func ecdsaCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
