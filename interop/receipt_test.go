package interop

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/veraison/go-cose"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// Labels of RFC 9942.
const (
	labelVDS = int64(395)
	labelVDP = int64(396)
)

// receiptRoot reads a receipt with go-cose and computes the root with transparency-dev/merkle. None of this project's
// code is used.
func receiptRoot(raw, leaf []byte) (m cose.Sign1Message, size uint64, root []byte, err error) {
	if err := m.UnmarshalCBOR(raw); err != nil {
		return m, 0, nil, err
	}
	if vds, ok := m.Headers.Protected[labelVDS]; !ok || vds != int64(1) {
		return m, 0, nil, fmt.Errorf("verifiable data structure %v", vds)
	}
	if m.Payload != nil {
		return m, 0, nil, errors.New("the payload is attached")
	}
	proofs, ok := m.Headers.Unprotected[labelVDP].(map[any]any)
	if !ok {
		return m, 0, nil, errors.New("no proofs")
	}
	inclusion, ok := proofs[int64(-1)].([]any)
	if !ok || len(inclusion) != 1 {
		return m, 0, nil, errors.New("no inclusion proof")
	}
	var p struct {
		_           struct{} `cbor:",toarray"`
		Size, Index uint64
		Path        [][]byte
	}
	if err := cbor.Unmarshal(inclusion[0].([]byte), &p); err != nil {
		return m, 0, nil, err
	}
	hash := rfc6962.DefaultHasher
	root, err = proof.RootFromInclusionProof(hash, p.Index, p.Size, hash.HashLeaf(leaf), p.Path)
	return m, p.Size, root, err
}

func (s *served) receipt(t *testing.T, slug string, index int) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/v1/public/orgs/%s/verify/evt-%d", s.server.URL, slug, index), nil)
	must(t, err)
	r.Header.Set("Accept", "application/cose")
	answer, err := s.server.Client().Do(r)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/cose" {
		t.Fatalf("event %d: got %d %v %s", index, answer.StatusCode, answer.Header, body)
	}
	return body
}

// A COSE library verifies receipts of trees of several shapes, of two organizations.
func TestCOSELibraryVerifiesReceipts(t *testing.T) {
	s := serve(t)
	for _, size := range []id.Index{2, 3, 24, 256, 257, 1000} {
		s.grow(t, s.tenant, size)
		state := s.state(t, s.tenant)
		public := state.VerifierKey().Public().Bytes()
		verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, ed25519.PublicKey(public[:]))
		must(t, err)
		for _, index := range []int{0, 1, int(size) / 2, int(size) - 1} {
			raw := s.receipt(t, "audited", index)
			leaf := s.entry(t, s.tenant, id.Index(index))
			m, signed, root, err := receiptRoot(raw, leaf)
			if err != nil || signed != uint64(size) {
				t.Fatalf("entry %d of %d: got size %d, %v", index, size, signed, err)
			}
			m.Payload = root
			if err := m.Verify(nil, verifier); err != nil {
				t.Errorf("entry %d of %d: %v", index, size, err)
			}
			m.Payload = append([]byte{^root[0]}, root[1:]...)
			if err := m.Verify(nil, verifier); !errors.Is(err, cose.ErrVerification) {
				t.Errorf("entry %d of %d, another root: got %v", index, size, err)
			}
			algorithm, err := m.Headers.Protected.Algorithm()
			claims, _ := m.Headers.Protected[cose.HeaderLabelCWTClaims].(map[any]any)
			if err != nil || algorithm != cose.AlgorithmEdDSA || claims[int64(1)] != s.origin(t) || claims[int64(2)] != fmt.Sprintf("tree %d", size) {
				t.Errorf("entry %d of %d: got %v %v, %v", index, size, algorithm, claims, err)
			}
			again, err := m.MarshalCBOR()
			must(t, err)
			if m.Payload = nil; len(again) != len(raw)+32+1 {
				t.Errorf("entry %d of %d: go-cose writes %d bytes with the root, of %d without", index, size, len(again), len(raw))
			}
			if again, err = m.MarshalCBOR(); err != nil || string(again) != string(raw) {
				t.Errorf("entry %d of %d: go-cose writes %x, %v, got %x", index, size, again, err, raw)
			}
		}
	}
	// The other organization's log has another key.
	public := s.state(t, s.tenant).VerifierKey().Public().Bytes()
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, ed25519.PublicKey(public[:]))
	must(t, err)
	m, _, root, err := receiptRoot(s.receipt(t, "other", 7), s.entry(t, 2, 7))
	must(t, err)
	m.Payload = root
	if err := m.Verify(nil, verifier); !errors.Is(err, cose.ErrVerification) {
		t.Errorf("another log's receipt: got %v", err)
	}
}

// entry returns the text of a logged entry.
func (s *served) entry(t *testing.T, tenant id.Tenant, index id.Index) []byte {
	t.Helper()
	e, err := s.ledgers.Event(t.Context(), s.state(t, tenant), index, 0)
	must(t, err)
	return log.EntryOf(e).Text()
}
