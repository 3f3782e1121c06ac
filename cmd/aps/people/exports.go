package people

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
)

// Export is an event of the log about an export, with what is needed to prove it.
type Export struct {
	Bundle   jsontext.Value `json:"bundle"`
	Envelope string         `json:"envelope"`
}

// maxExports bounds the number of events that are read. A manifest has one event; another text may contain its digest too.
const maxExports = 10

// FindExports returns the events of a kind at or after an index whose texts contain a digest. Like the other commands for
// people, it uses a token or an e-mail address from the environment, or the session of aps login.
func FindExports(ctx context.Context, t *Terminal, address, kind, digest string, from id.Index) (found []Export, err error) {
	f := personFlags{serviceFlags: serviceFlags{URL: address}, Email: os.Getenv("APS_EMAIL")}
	if text := os.Getenv("APS_ORG"); text != "" {
		if f.Org, err = id.ParseOrganization(text); err != nil {
			return nil, fmt.Errorf("APS_ORG: %w", err)
		}
	}
	s, err := f.openSession(ctx, t)
	if err != nil {
		return nil, err
	}
	values := url.Values{"action_kind": {kind}, "q": {digest}, "from": {strconv.FormatUint(uint64(from), 10)}}
	err = s.readPages(ctx, "/events", values, maxExports, func(text jsontext.Value) error {
		var e wire.Event
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		var x Export
		if err := s.callConsole(ctx, http.MethodGet, "/events/"+url.PathEscape(string(e.ID)), nil, &x); err != nil {
			return err
		}
		found = append(found, x)
		return nil
	})
	return found, err
}
