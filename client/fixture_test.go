package client

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// pauses records how long a client would have waited, without waiting.
type pauses []time.Duration

func (p *pauses) pause(ctx context.Context, d time.Duration) error {
	*p = append(*p, d)
	return ctx.Err()
}

// dial returns a client of the service with o's token that does not wait between tries.
func dial(t testing.TB, s *fakeservice.Service, o *fakeservice.Organization) (*Client, *pauses) {
	t.Helper()
	waited := &pauses{}
	c, err := New(Config{BaseURL: s.URL + "/", Token: o.Token, Retry: Retry{Attempts: 4, Sleep: waited.pause}})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport.(*http.Transport).DisableKeepAlives = true // net/http itself retries on a reused connection
	return c, waited
}

func newSigner(t testing.TB, o *fakeservice.Organization) *Signer {
	t.Helper()
	s, err := ParseSigner(Identity{o.ID, o.Agent, o.Key}, o.Seed+"\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// envelope returns a signed event of o.
func envelope(t testing.TB, o *fakeservice.Organization, e Event) []byte {
	t.Helper()
	if e.ActionKind == "" {
		e.ActionKind = "tool_call"
	}
	signed, err := newSigner(t, o).SignEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// filled returns the service with n events in the log of each of two organizations.
func filled(t testing.TB, n int) *fakeservice.Service {
	t.Helper()
	s := fakeservice.Start(t, 2)
	for i := range 2 {
		c, _ := dial(t, s, s.Organization(i))
		for range n {
			if _, err := c.Send(t.Context(), envelope(t, s.Organization(i), Event{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}
