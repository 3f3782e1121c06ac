package identity

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Sealer encrypts for a context, and opens nothing that was sealed for another one (package seal).
type Sealer interface {
	Seal(context string, plaintext []byte) ([]byte, error)
	Open(context string, sealed []byte) ([]byte, error)
}

const (
	browserContext = "known browser"
	browserLife    = 180 * 24 * time.Hour
)

// knownBrowser is the content of the cookie by which a browser is known. It lets nobody in.
type knownBrowser struct {
	Name    string     `json:"name"`
	Address id.Hash    `json:"address"`
	Until   id.Instant `json:"until"`
}

func (s *Server) browserCookieName() string { return s.cookie + "_browser" }

// findBrowser returns the browser of a request; the zero value for one that is not known.
func (s *Server) findBrowser(r *http.Request) account.Browser {
	c, err := r.Cookie(s.browserCookieName())
	if err != nil || s.Browsers == nil {
		return account.Browser{}
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return account.Browser{}
	}
	text, err := s.Browsers.Open(browserContext, sealed)
	var known knownBrowser
	if err != nil || json.Unmarshal(text, &known) != nil || id.InstantOf(s.Now()) >= known.Until {
		return account.Browser{}
	}
	return account.Browser{Name: known.Name, Address: known.Address}
}

// rememberBrowser sets the cookie by which the browser is known from now on, unless it is known.
func (s *Server) rememberBrowser(w http.ResponseWriter, r *request, email string) error {
	address := account.HashAddress(email)
	if s.Browsers == nil || s.findBrowser(r.Request).Address == address {
		return nil
	}
	text, err := json.Marshal(knownBrowser{Name: rand.Text(), Address: address,
		Until: id.InstantOf(s.Now().Add(browserLife))})
	if err != nil {
		return err
	}
	sealed, err := s.Browsers.Seal(browserContext, text)
	if err != nil {
		return err
	}
	cookie := s.sessionCookie(base64.RawURLEncoding.EncodeToString(sealed), int(browserLife.Seconds()))
	cookie.Name = s.browserCookieName()
	http.SetCookie(w, cookie)
	return nil
}
