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

// IdentityLabel names the keys of nodes among all that are derived from a master key.
const IdentityLabel = "agentledger/node-tls/v1"

// Identity is the identity of a node towards the others. It may be used concurrently.
type Identity struct {
	certificate tls.Certificate
	accepted    []ed25519.PublicKey
}

// NewIdentity returns the identity that belongs to derived secrets of 32 bytes, of the newest master key first. It
// keeps the keys and drops the secrets.
func NewIdentity(secrets ...[ed25519.SeedSize]byte) (*Identity, error) {
	if len(secrets) == 0 {
		return nil, errors.New("make the identity of the node: no key")
	}
	n := &Identity{}
	for _, s := range secrets {
		n.accepted = append(n.accepted, ed25519.NewKeyFromSeed(s[:]).Public().(ed25519.PublicKey))
	}
	private := ed25519.NewKeyFromSeed(secrets[0][:])
	der, err := x509.CreateCertificate(rand.Reader, template(), template(), private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("make the identity of the node: %w", err)
	}
	n.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	return n, nil
}

// template has the fields that a certificate needs, and no statement.
func template() *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agentledger node"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
}

// errForeign is the answer to a peer that does not show one of the keys.
var errForeign = errors.New("the other side is no node of this service")

// verify compares the key of the other side's certificate. That the other side has the private key is proved
// by the handshake, or by the session that it resumes.
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

// Server returns the settings of an internal listener.
func (n *Identity) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{n.certificate},
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: n.verify, NextProtos: []string{"h2", "http/1.1"}}
}

// Client returns the settings of connections to internal listeners. InsecureSkipVerify leaves out names and
// authorities only; the key is compared all the same.
func (n *Identity) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{n.certificate},
		InsecureSkipVerify: true, VerifyConnection: n.verify, ClientSessionCache: tls.NewLRUClientSessionCache(64)}
}
