package seal

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Sealer encrypts for a context, and opens nothing that was sealed for another context. A Keyring is one.
type Sealer interface {
	Seal(context string, plaintext []byte) ([]byte, error)
	Open(context string, sealed []byte) ([]byte, error)
}

// maxCookie bounds the text of a cookie that is opened, in bytes: browsers keep no longer one.
const maxCookie = 4096

// Cookie returns the JSON of a value, sealed, as the text of a cookie.
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

// OpenCookie reads a value from the text of a cookie, which anybody may have written. It fails for a text
// that Cookie did not make for the context.
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
