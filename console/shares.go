package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/wire"
)

// sharePath is the path of the pages of links, below which their secrets are.
const sharePath = "/share"

// addShareRoutes adds the routes of links to views, and of the download of a view.
func (s *Server) addShareRoutes(table *routes) {
	shares, none, some := permit(account.Share), edge.Body{}, edge.JSONBody(maxBody)
	table.Add("GET", "/v1/console/shares", shares, none, s.listShares).TakesPage()
	table.Add("POST", "/v1/console/shares", shares, some, s.surface.whileActive(s.createShare))
	table.Add("DELETE", "/v1/console/shares/{share}", shares, none, s.revokeShare)
}

func (s *Server) listShares(r *request) (answer, error) {
	return okAnswer(s.ListShares(r.Context(), r.Caller, r.URL.Query()))
}

// ListShares returns a page of the organization's links, latest first.
func (s *Server) ListShares(ctx context.Context, c *Caller, query url.Values) (wire.Shares, error) {
	var body wire.Shares
	if err := s.surface.check(ctx, c, account.Share); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	all, err := s.Shares.List(ctx, c.Who.Tenant)
	if err != nil {
		return body, err
	}
	begin := 1 + slices.IndexFunc(all, func(l share.Link) bool { return string(l.ID) == p.After })
	if begin == 0 && p.After != "" {
		return body, fault.New(fault.Invalid, "after is not a link of the organization")
	}
	body.Shares, body.Next = edge.CutPage(p, all[begin:], func(l share.Link) string { return string(l.ID) }, s.describeShare)
	return body, nil
}

func (s *Server) describeShare(l share.Link) wire.Share {
	return wire.Share{ShareID: string(l.ID), Note: wire.Text(l.Note), Query: l.Query, Columns: append([]string{}, l.Columns...), State: l.State(id.InstantOf(s.Shares.Clock())),
		CreatedBy: string(l.By), CreatedAt: l.CreatedAt, ExpiresAt: l.ExpiresAt, RevokedAt: wire.Time(l.RevokedAt), RevokedBy: wire.Text(l.RevokedBy),
		Openings: l.Openings, OpenedAt: wire.Time(l.OpenedAt)}
}

// NewShare is the request for a link.
type NewShare struct {
	Note      string    `json:"note"`
	Query     string    `json:"query"` // of GET /v1/console/acts, without the parameters of pages and texts
	ExpiresAt time.Time `json:"expires_at"`
}

func (s *Server) createShare(r *request) (answer, error) {
	var wanted NewShare
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.CreateShare(r.Context(), r.Caller, wanted))
}

// CreateShare creates a link to a view of acts. The answer contains its address.
func (s *Server) CreateShare(ctx context.Context, c *Caller, wanted NewShare) (wire.CreatedShare, error) {
	if err := s.surface.check(ctx, c, account.Share); err != nil {
		return wire.CreatedShare{}, err
	}
	if err := s.surface.checkActive(ctx, c.Who.Tenant); err != nil {
		return wire.CreatedShare{}, err
	}
	if len(wanted.Query) > share.MaxQuery {
		return wire.CreatedShare{}, fault.New(fault.Invalid, "query must have at most 2048 bytes")
	}
	query, err := s.parseShared(ctx, c, wanted.Query)
	if err != nil {
		return wire.CreatedShare{}, err
	}
	columns, err := s.acts.Columns(ctx, eventlist.Asked{Tenant: c.Who.Tenant, Role: sharedRole, Values: query})
	if err != nil {
		return wire.CreatedShare{}, err
	}
	made, secret, err := s.Shares.Create(ctx, c.Who.Tenant, c.Who.Account,
		share.Wanted{Note: wanted.Note, Query: query.Encode(), Columns: columns, ExpiresAt: id.InstantOf(wanted.ExpiresAt)})
	if err != nil {
		return wire.CreatedShare{}, err
	}
	return wire.CreatedShare{Share: s.describeShare(made), URL: s.PublicURL + sharePath + "/" + secret}, nil
}

// sharedParameters are the parameters of a list of acts that a link can have. Texts are not among them: whether an act is in
// such a view takes a search through envelopes, which strangers could repeat.
func sharedParameters() []string {
	return []string{"agent_id", "tool", "action_kind", "decision", "declared", "trace_id", "principal", "on_behalf_of", "issuer", "signer", "from", "to",
		"outcome", "approver", "confirmed", "column", "log"}
}

// parseShared parses the query of a new link. An approver becomes an account, and without a log it is the current one, so that
// the view stays as it is. The query is in the log permanently, so it must have no address.
func (s *Server) parseShared(ctx context.Context, c *Caller, text string) (url.Values, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "query can't be read", err)
	}
	for name, values := range query {
		if !slices.Contains(sharedParameters(), name) {
			return nil, fault.New(fault.Invalid, "query may have agent_id, tool, action_kind, decision, declared, trace_id, principal, "+
				"on_behalf_of, issuer, signer, from, to, outcome, approver, confirmed, column and log. A search for words can't be shared")
		}
		if len(values) > 1 && name != "column" {
			return nil, fault.New(fault.Invalid, "query has "+name+" more than once")
		}
	}
	if address := query.Get("approver"); strings.Contains(address, "@") {
		who, err := s.findMember(ctx, c.Who.Tenant, address)
		if err != nil {
			return nil, err
		}
		query.Set("approver", string(who))
	}
	if query.Get("log") == "" {
		state, err := s.Events.Ledgers.State(ctx, c.Who.Tenant)
		if err != nil {
			return nil, err
		}
		query.Set("log", string(state.Identity().Origin))
	}
	_, err = s.acts.List(ctx, eventlist.Asked{Tenant: c.Who.Tenant, Role: sharedRole, Values: query, Limit: 1})
	return query, err
}

// findMember returns the account of a member by its address. It returns the same fault.Invalid for an address of another
// organization's member and for an unknown one.
func (s *Server) findMember(ctx context.Context, t id.Tenant, address string) (account.ID, error) {
	who, err := s.People.Find(ctx, address)
	if err == nil {
		_, err = s.Members.Accounts.StoredMembership(ctx, t, who.ID)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return "", fault.New(fault.Invalid, "approver must be the address of a member, or the ID of an account")
	}
	return who.ID, err
}

func (s *Server) revokeShare(r *request) (answer, error) {
	return noContent(s.RevokeShare(r.Context(), r.Caller, r.PathParameter("share")))
}

// RevokeShare ends a link of the organization. Every member who may share views may end every link.
func (s *Server) RevokeShare(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.Share); err != nil {
		return err
	}
	return s.Shares.Revoke(ctx, c.Who.Tenant, c.Who.Account, share.ID(name))
}

// routeDownload adds the download of a shared view to r. It is not in the OpenAPI document, like the pages of the view.
func (s *Server) routeDownload(r *edge.Router) {
	var table edge.Table[edge.Handler]
	table.Add("GET", sharePath+"/{secret}/acts.csv", edge.Permission{}, edge.Body{}, s.downloadShared)
	edge.Mount(r, edge.Surface[edge.Handler]{Edge: s.surface.Edge, Unlisted: true,
		Serve: func(route *edge.Route[edge.Handler]) edge.Handler { return route.Handler }}, table)
}

// downloadShared answers with the acts of a shared view as CSV.
func (s *Server) downloadShared(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("X-Robots-Tag", "noindex")
	w.Header().Set("Referrer-Policy", "no-referrer")
	d := &sharedDownload{exchange: exchange{request: request{Request: r}, surface: s.surface, w: w}, server: s}
	if err := s.openShared(r, d.PathParameter("secret")); err != nil {
		return err
	}
	return s.surface.sharedClass().Serve(r, d)
}
