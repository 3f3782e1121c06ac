// Package toolname resolves the did:web name of a tool to the keys with which the tool signs receipts. It hides the address and the
// forms of DID documents from callers, who get verifier keys.
//
// Invariants:
//
//   - A key is one of the tool's only if the document that the name resolves to lists it for assertions, under its own name, and
//     neither expired nor revoked. Only Ed25519 keys are returned.
//   - One call for each name, nothing is cached: a caller registers what it gets, and nothing is resolved later.
//   - A document has at most egress.Options.MaxAnswer bytes and maxKeys keys.
//
// Source: did:web Method Specification of the W3C CCG, draft of 2023; DID Core 1.0; Controlled Identifiers 1.0.
package toolname

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/tlog"
)

// Prefix begins each name.
const Prefix = "did:web:"

// maxKeys bounds the keys of a document that are returned.
const maxKeys = 16

var (
	// ErrName is returned for a text that is not a did:web name.
	ErrName = errors.New("not a did:web name")
	// ErrDocument is returned for a document that lists no key of the tool.
	ErrDocument = errors.New("the document has no Ed25519 key for assertions")
)

// Getter makes calls to addresses that organizations name. egress.Client implements it.
type Getter interface {
	Get(ctx context.Context, address string, header http.Header) (egress.Answer, error)
}

// Resolve returns the verifier keys of a tool, of which the name of each is the tool's, in the order of its document: 1 to maxKeys.
// Errors wrap ErrName, ErrDocument, or are about the call.
func Resolve(ctx context.Context, client Getter, name string, now time.Time) ([]tlog.VerifierKey, error) {
	address, err := addressOf(name)
	if err != nil {
		return nil, err
	}
	answer, err := client.Get(ctx, address, http.Header{"Accept": {did.MediaDIDJSON + ", " + did.MediaJSON}})
	switch {
	case err != nil:
		return nil, fmt.Errorf("resolve name of tool: %w", err)
	case answer.Status != http.StatusOK:
		return nil, fmt.Errorf("resolve name of tool: status %d", answer.Status)
	}
	return parseDocument(answer.Body, name, now)
}

// nameForm is a name: a domain in lower case, a port, and segments of a path. Others could be spelled in several ways.
var nameForm = regexp.MustCompile(`^did:web:([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?:%3A([1-9][0-9]{0,4}))?((?::[A-Za-z0-9._~-]+)*)$`)

// addressOf returns the address of the document of a name.
func addressOf(name string) (string, error) {
	parts := nameForm.FindStringSubmatch(name)
	if parts == nil {
		return "", ErrName
	}
	host, port, path := parts[1], parts[2], strings.ReplaceAll(parts[3], ":", "/")
	if _, err := netip.ParseAddr(host); err == nil { // the method forbids addresses
		return "", ErrName
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", ErrName
		}
	}
	if port != "" {
		host += ":" + port
	}
	if path == "" {
		path = "/.well-known"
	}
	return "https://" + host + path + "/did.json", nil
}

// document is the part of a DID document that is read.
type document struct {
	ID      string           `json:"id"`
	Methods []method         `json:"verificationMethod"`
	Assert  []jsontext.Value `json:"assertionMethod"` // names of methods, and methods
}

// method is a verification method.
type method struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller string `json:"controller"`
	Expires    string `json:"expires"`
	Revoked    string `json:"revoked"`
	Multibase  string `json:"publicKeyMultibase"`
	JWK        struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		X     string `json:"x"`
	} `json:"publicKeyJwk"`
}

// parseDocument returns the keys of a tool in its document, which may be in the form of a resolution. Errors wrap ErrDocument.
func parseDocument(text []byte, name string, now time.Time) ([]tlog.VerifierKey, error) {
	var resolution struct {
		Document jsontext.Value `json:"didDocument"`
		Metadata struct {
			Deactivated bool `json:"deactivated"`
		} `json:"didDocumentMetadata"`
	}
	err := json.Unmarshal(text, &resolution)
	if resolution.Document != nil {
		text = resolution.Document
	}
	var d document
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if !did.Equal(d.ID, name) || resolution.Metadata.Deactivated {
		return nil, fmt.Errorf("%w: it is of another name, or deactivated", ErrDocument)
	}
	var keys []tlog.VerifierKey
	seen := make(map[edkey.Public]bool)
	for _, listed := range d.Assert {
		m := d.find(listed, name)
		if m == nil {
			continue
		}
		key, ok := m.key(name, now)
		if !ok || seen[key.Public()] {
			continue
		}
		seen[key.Public()] = true
		if keys = append(keys, key); len(keys) > maxKeys {
			return nil, fmt.Errorf("%w: more than %d of them", ErrDocument, maxKeys)
		}
	}
	if len(keys) == 0 {
		return nil, ErrDocument
	}
	return keys, nil
}

// find returns the method that a relationship contains or names, or nil.
func (d *document) find(listed jsontext.Value, name string) *method {
	var of string
	if listed.Kind() == '{' {
		var m method
		if json.Unmarshal(listed, &m) != nil {
			return nil
		}
		return &m
	}
	if json.Unmarshal(listed, &of) != nil {
		return nil
	}
	for i := range d.Methods {
		if m := &d.Methods[i]; m.ID != "" && absolute(m.ID, name) == absolute(of, name) {
			return m
		}
	}
	return nil
}

// absolute returns the URL of a method, which may be relative to its document.
func absolute(id, name string) string {
	if strings.HasPrefix(id, "#") {
		return name + id
	}
	return id
}

// key returns the key of a method. ok is false if it is not an Ed25519 key of the name that may sign now.
func (m *method) key(name string, now time.Time) (key tlog.VerifierKey, ok bool) {
	if !did.Equal(m.Controller, name) || m.Revoked != "" || m.Expires != "" && !isLater(m.Expires, now) {
		return key, false
	}
	var raw [edkey.PublicSize]byte
	switch m.Type {
	case "Multikey", "Ed25519VerificationKey2020":
		var err error
		if raw, err = did.ParseMultikey(m.Multibase); err != nil {
			return key, false
		}
	case "JsonWebKey", "JsonWebKey2020":
		x, err := base64.RawURLEncoding.Strict().DecodeString(m.JWK.X)
		if err != nil || m.JWK.Type != "OKP" || m.JWK.Curve != "Ed25519" || len(x) != len(raw) {
			return key, false
		}
		copy(raw[:], x)
	default:
		return key, false
	}
	public, err := edkey.ParsePublic(raw[:])
	if err != nil {
		return key, false
	}
	key, err = tlog.NewVerifierKey(name, public)
	return key, err == nil
}

// isLater reports whether a dateTimeStamp is after now.
func isLater(text string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.After(now)
}
