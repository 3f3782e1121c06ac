package seal

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Sealer encrypts values for a context, and opens them only for the same context. Keyring implements it.
type Sealer interface {
	Seal(context string, plaintext []byte) ([]byte, error)
	Open(context string, sealed []byte) ([]byte, error)
}

// maxCookie bounds the length in bytes of a cookie that OpenCookie accepts. Browsers do not store longer ones.
const maxCookie = 4096

// Cookie returns a cookie value that contains the JSON of v, sealed for the context.
func Cookie(s Sealer, context string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err == nil {
		text, err = s.Seal(context, text)
	}
	if err != nil {
		return "", fmt.Errorf("seal %s: %w", context, err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// OpenCookie opens a cookie value, which may come from an attacker, and decodes it into a value. It returns an error
// unless Cookie made the cookie value for the same context.
func OpenCookie(s Sealer, context, cookie string, into any) error {
	if len(cookie) > maxCookie {
		return errors.New("cookie is too long")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return fmt.Errorf("open %s: %w", context, err)
	}
	text, err := s.Open(context, sealed)
	if err != nil {
		return fmt.Errorf("open %s: %w", context, err)
	}
	return json.Unmarshal(text, into)
}
