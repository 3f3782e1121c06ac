package cluster

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// IdentityLabel is the derivation label of node keys, among all keys that are derived from a master key.
const IdentityLabel = "agentledger/node-tls/v1"

// Identity is the TLS identity of a node towards the other nodes of the service, for the internal listeners: TLS 1.3 with
// mutual authentication by keys that every node derives from the master key. It may be used concurrently.
//
//   - A node accepts only nodes of the same service, in each direction. The proof is the key of the certificate, which
//     is compared with the derived keys. Names, authorities and dates of certificates are ignored.
//   - A node with several master keys, a new one and older ones, presents the key of the latest one and accepts the keys
//     of all. So nodes on both sides of a change of the master key can reach each other, once each has both.
//   - A rejected peer learns only that it was rejected. Its request is not read.
//   - The keys reveal nothing about the master key, and nothing is stored.
type Identity struct {
	certificate tls.Certificate
	accepted    []ed25519.PublicKey
}

// NewIdentity returns the identity for secrets derived from the master keys, the latest first. It does not retain the
// secrets.
func NewIdentity(secrets ...[ed25519.SeedSize]byte) (*Identity, error) {
	if len(secrets) == 0 {
		return nil, errors.New("create node identity: no key")
	}
	n := &Identity{}
	for _, s := range secrets {
		n.accepted = append(n.accepted, ed25519.NewKeyFromSeed(s[:]).Public().(ed25519.PublicKey))
	}
	private := ed25519.NewKeyFromSeed(secrets[0][:])
	der, err := x509.CreateCertificate(rand.Reader, template(), template(), private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("create node identity: %w", err)
	}
	n.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	return n, nil
}

// template returns the fields that a certificate requires. They have no meaning.
func template() *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agentledger node"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
}

// errForeign is returned for a peer that does not present one of the keys.
var errForeign = errors.New("the peer is not a node of this service")

// verify compares the key of the peer's certificate. The handshake, or the session that it resumes, proves that the peer
// has the private key.
func (n *Identity) verify(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 {
		return errForeign
	}
	key, isEd25519 := c.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !isEd25519 || !slices.ContainsFunc(n.accepted, func(k ed25519.PublicKey) bool { return k.Equal(key) }) {
		return errForeign
	}
	return nil
}

// Server returns the TLS configuration of an internal listener.
func (n *Identity) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{n.certificate},
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: n.verify, NextProtos: []string{"h2", "http/1.1"}}
}

// Client returns the TLS configuration of connections to internal listeners. InsecureSkipVerify disables only the
// checks of names and authorities; the key is still compared.
func (n *Identity) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{n.certificate},
		InsecureSkipVerify: true, VerifyConnection: n.verify, ClientSessionCache: tls.NewLRUClientSessionCache(64)}
}
