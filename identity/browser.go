package identity

import (
	"crypto/rand"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

const (
	browserContext = "known browser"
	browserLife    = 180 * 24 * time.Hour
)

// knownBrowser is the content of the cookie that identifies a browser. The cookie does not authenticate anybody.
type knownBrowser struct {
	Name    string     `json:"name"`
	Address id.Hash    `json:"address"`
	Until   id.Instant `json:"until"`
}

func (s *Server) browserCookieName() string { return s.cookie + "_browser" }

// findBrowser returns the browser of a caller, or the zero value if the browser is not known.
func (s *Server) findBrowser(c *Caller) account.Browser {
	k, err := c.request.Cookie(s.browserCookieName())
	if err != nil || s.Browsers == nil {
		return account.Browser{}
	}
	var known knownBrowser
	err = seal.OpenCookie(s.Browsers, browserContext, k.Value, &known)
	if err != nil || id.InstantOf(s.Now()) >= known.Until {
		return account.Browser{}
	}
	return account.Browser{Name: known.Name, Address: known.Address}
}

// rememberBrowser sets the cookie that identifies the browser, unless the browser already has one for the address.
func (s *Server) rememberBrowser(c *Caller, email string) error {
	address := account.HashAddress(email)
	if s.Browsers == nil || s.findBrowser(c).Address == address {
		return nil
	}
	known := knownBrowser{Name: rand.Text(), Address: address, Until: id.InstantOf(s.Now().Add(browserLife))}
	sealed, err := seal.Cookie(s.Browsers, browserContext, known)
	if err != nil {
		return err
	}
	cookie := s.sessionCookie(sealed, int(browserLife.Seconds()))
	cookie.Name = s.browserCookieName()
	c.setCookie(cookie)
	return nil
}
