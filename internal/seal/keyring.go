package seal

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/crypto/chacha20poly1305"
)

// Reasons why a sealed value cannot be opened.
var (
	// ErrUnknownKey is returned if no key of the ring has sealed the value.
	ErrUnknownKey = errors.New("sealed under an unknown master key")
	// ErrDamaged is returned if the value is not a sealed value, was changed, or was sealed for another context.
	ErrDamaged = errors.New("sealed value is damaged or was sealed for another context")
)

const (
	version    = 1
	headerSize = 1 + len(keyID{})
	nonceSize  = chacha20poly1305.NonceSizeX
)

// Keyring seals values under its active key and opens values that any of its keys has sealed. It is immutable, and its
// methods may be called concurrently. Its ciphers are hidden behind functions for the reason given at Key.
type Keyring struct {
	active keyID
	ids    []keyID // of all keys, the active one first
	cipher func(keyID) (cipher.AEAD, bool)
	derive func(label string) [][keySize]byte
}

// NewKeyring returns a ring that seals under active and opens values sealed under active or an older key. It rejects a
// zero key and a key given twice.
func NewKeyring(active Key, older ...Key) (*Keyring, error) {
	ciphers := make(map[keyID]cipher.AEAD, 1+len(older))
	ids := make([]keyID, 0, 1+len(older))
	for _, k := range append([]Key{active}, older...) {
		if err := addKeyCipher(ciphers, k); err != nil {
			return nil, fmt.Errorf("build keyring: %w", err)
		}
		ids = append(ids, k.fingerprint())
	}
	lookup := func(k keyID) (cipher.AEAD, bool) {
		c, ok := ciphers[k]
		return c, ok
	}
	derive := func(label string) (derived [][keySize]byte) {
		for _, k := range append([]Key{active}, older...) {
			derived = append(derived, k.deriveSecret(label))
		}
		return derived
	}
	return &Keyring{active: active.fingerprint(), ids: ids, cipher: lookup, derive: derive}, nil
}

// Derive returns a 32-byte secret for each key of the ring, the active one first. It reveals neither the keys nor the
// secrets of other labels.
func (r *Keyring) Derive(label string) [][keySize]byte { return r.derive(label) }

// Authenticate returns an HMAC-SHA-256 of a text under a key derived from the active master key. The result is valid
// for one purpose only.
func (r *Keyring) Authenticate(purpose string, text []byte) [sha256.Size]byte {
	return authenticator(r.derive(purpose)[0], text)
}

// IsAuthentic reports whether mac is the result of Authenticate for the text and the purpose under any key of the ring.
func (r *Keyring) IsAuthentic(purpose string, text, mac []byte) bool {
	for _, key := range r.derive(purpose) {
		if want := authenticator(key, text); hmac.Equal(want[:], mac) {
			return true
		}
	}
	return false
}

func authenticator(key [keySize]byte, text []byte) [sha256.Size]byte {
	h := hmac.New(sha256.New, key[:])
	h.Write(text)
	return [sha256.Size]byte(h.Sum(nil))
}

// Fingerprints returns the IDs of the keys, the active one first, as 16 hexadecimal digits each. Every sealed value
// contains the ID of its key; it reveals nothing about the key.
func (r *Keyring) Fingerprints() []string {
	names := make([]string, len(r.ids))
	for i, k := range r.ids {
		names[i] = hex.EncodeToString(k[:])
	}
	return names
}

func addKeyCipher(ciphers map[keyID]cipher.AEAD, k Key) error {
	if k.secret == nil {
		return errors.New("master key is empty")
	}
	if _, ok := ciphers[k.fingerprint()]; ok {
		return errors.New("master key given twice")
	}
	c, err := chacha20poly1305.NewX(k.secret()[:])
	if err != nil {
		return err
	}
	ciphers[k.fingerprint()] = c
	return nil
}

// Seal encrypts plaintext for a context, which names the secret and its owner (for example "log-key" and an origin).
// Open needs the same context.
func (r *Keyring) Seal(context string, plaintext []byte) ([]byte, error) {
	if context == "" {
		return nil, errors.New("seal: empty context")
	}
	aead, _ := r.cipher(r.active) // NewKeyring put it there
	sealed := make([]byte, headerSize+nonceSize, headerSize+nonceSize+len(plaintext)+aead.Overhead())
	sealed[0] = version
	copy(sealed[1:], r.active[:])
	nonce := sealed[headerSize:]
	rand.Read(nonce) // never fails since Go 1.24
	return aead.Seal(sealed, nonce, plaintext, additionalData(sealed, context)), nil
}

// Open returns the plaintext of a value that was sealed for the context, in a new slice. It returns ErrUnknownKey or
// ErrDamaged (wrapped) if the value cannot be opened.
func (r *Keyring) Open(context string, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize+nonceSize+chacha20poly1305.Overhead || sealed[0] != version {
		return nil, fmt.Errorf("open: %w", ErrDamaged)
	}
	aead, ok := r.cipher(keyID(sealed[1:headerSize]))
	if !ok {
		return nil, fmt.Errorf("open: %w", ErrUnknownKey)
	}
	nonce, box := sealed[headerSize:headerSize+nonceSize], sealed[headerSize+nonceSize:]
	plaintext, err := aead.Open(nil, nonce, box, additionalData(sealed, context))
	if err != nil {
		return nil, fmt.Errorf("open: %w", ErrDamaged)
	}
	return plaintext, nil
}

// additionalData returns the authenticated data: the header, which has a fixed size, and the context.
func additionalData(sealed []byte, context string) []byte {
	return append(sealed[:headerSize:headerSize], context...)
}

// String implements fmt.Stringer. Like LogValue and Format, it reveals nothing about the keys.
func (r *Keyring) String() string { return "[keyring]" }

// LogValue implements slog.LogValuer.
func (r *Keyring) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Format implements fmt.Formatter.
func (r *Keyring) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.String()) }

// Reseal returns a sealed value sealed under the active key. If it is already, Reseal returns it unchanged, and changed
// is false. Errors are the same as for Open.
func (r *Keyring) Reseal(context string, sealed []byte) (resealed []byte, changed bool, err error) {
	plaintext, err := r.Open(context, sealed)
	if err != nil || keyID(sealed[1:headerSize]) == r.active {
		return sealed, false, err
	}
	resealed, err = r.Seal(context, plaintext)
	return resealed, err == nil, err
}
