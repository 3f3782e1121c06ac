package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// requestOptions is PublicKeyCredentialRequestOptionsJSON (Web Authentication, section 5.5).
type requestOptions struct {
	Challenge        signedvote.Bytes    `json:"challenge"`
	RPID             string              `json:"rpId"`
	AllowCredentials []allowedCredential `json:"allowCredentials"`
	UserVerification string              `json:"userVerification"`
	Timeout          int                 `json:"timeout"` // in milliseconds
}

type allowedCredential struct {
	Type string           `json:"type"`
	ID   signedvote.Bytes `json:"id"`
}

// signatureTimeout is how long a browser waits for a signature, in milliseconds. The signed text is valid for longer.
const signatureTimeout = 300_000

func newRequestOptions(text []byte, rpID string, credentials ...signedvote.Bytes) *requestOptions {
	challenge := signedvote.Challenge(text)
	o := &requestOptions{Challenge: challenge[:], RPID: rpID, UserVerification: "required", Timeout: signatureTimeout,
		AllowCredentials: make([]allowedCredential, len(credentials))}
	for i, c := range credentials {
		o.AllowCredentials[i] = allowedCredential{"public-key", c}
	}
	return o
}

// beginVote returns what the caller must sign to vote.
func (s *Server) beginVote(r *request) (answer, error) {
	var body Ballot
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	ballot := body.cast(r.Caller)
	if err := approval.CheckBallot(&ballot); err != nil {
		return answer{}, err
	}
	if ballot.Assertion != nil {
		return answer{}, fault.New(fault.Invalid, "assertion must be absent: it is derived from answer")
	}
	name := approval.ID(r.PathParameter("approval"))
	if _, err := s.Approvals.Find(r.Context(), r.Who.Tenant, name); err != nil {
		return answer{}, err
	}
	keys, err := s.VoterKeys.Active(r.Context(), r.Who.Tenant, r.Who.Account)
	if err != nil {
		return answer{}, err
	}
	if len(keys) == 0 {
		return answer{}, &fault.Error{Kind: fault.Conflict, Code: "no_voter_key",
			Message: "No passkey of yours signs votes here: register one first"}
	}
	credentials := make([]signedvote.Bytes, len(keys))
	for i := range keys {
		credentials[i] = keys[i].CredentialID
	}
	now := id.InstantOf(s.VoterKeys.Clock())
	vote := ballot.SignedVote(name)
	vote.Origin = keys[0].Log
	text, err := vote.Text(signedvote.Bucket(now))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, struct {
		Time      string          `json:"time"`
		Text      string          `json:"text"`
		PublicKey *requestOptions `json:"public_key"`
	}{signedvote.Bucket(now), string(text), newRequestOptions(text, keys[0].RPID, credentials...)}), nil
}

func (s *Server) describeVoterKey(ctx context.Context, k voterkey.Key) (wire.VoterKey, error) {
	who, err := s.VoterKeys.Accounts.ByID(ctx, k.Account)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return wire.VoterKey{}, err
	}
	return wire.VoterKey{AccountID: string(k.Account), Email: who.Email, CredentialID: k.CredentialID,
		Thumbprint: k.PublicKey.Thumbprint(), PublicKey: k.PublicKey, RegisteredAt: k.RegisteredAt,
		ConsentBy: wire.Text(k.ConsentBy), UsedAt: wire.Time(k.UsedAt)}, nil
}

func (s *Server) listVoterKeys(r *request) (answer, error) {
	return okAnswer(s.ListVoterKeys(r.Context(), r.Caller, r.URL.Query()))
}

// ListVoterKeys returns a page of the voter keys of the account in the parameter account_id, or of all accounts.
func (s *Server) ListVoterKeys(ctx context.Context, c *Caller, query url.Values) (wire.VoterKeys, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.VoterKeys{}, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return wire.VoterKeys{}, err
	}
	who := account.ID(query.Get("account_id"))
	keys, next, err := s.VoterKeys.List(ctx, c.Who.Tenant, who, p.After, p.Limit)
	if err != nil {
		return wire.VoterKeys{}, err
	}
	body := wire.VoterKeys{Keys: make([]wire.VoterKey, len(keys)), Next: wire.Text(next)}
	for i := range keys {
		if body.Keys[i], err = s.describeVoterKey(ctx, keys[i]); err != nil {
			return wire.VoterKeys{}, err
		}
	}
	return body, nil
}

func (s *Server) beginVoterKey(r *request) (answer, error) {
	var body struct {
		CredentialID signedvote.Bytes `json:"credential_id"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	b, err := s.VoterKeys.Begin(r.Context(), r.Who.Tenant, r.Who.Account, body.CredentialID)
	if err != nil {
		return answer{}, err
	}
	answer := struct {
		Time       string          `json:"time"`
		Text       string          `json:"text"`
		Possession *requestOptions `json:"possession"`
		Consent    *requestOptions `json:"consent"` // null if the account has no voter key
	}{b.Time, string(b.Text), newRequestOptions(b.Text, b.RPID, body.CredentialID), nil}
	if len(b.Consents) > 0 {
		answer.Consent = newRequestOptions(b.Text, b.RPID, b.Consents...)
	}
	return jsonAnswer(http.StatusOK, answer), nil
}

func (s *Server) registerVoterKey(r *request) (answer, error) {
	var body struct {
		CredentialID signedvote.Bytes      `json:"credential_id"`
		Possession   signedvote.Assertion  `json:"possession"`
		Consent      *signedvote.Assertion `json:"consent"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	who, err := s.VoterKeys.Accounts.ByID(r.Context(), r.Who.Account)
	if err != nil {
		return answer{}, err
	}
	made, err := s.VoterKeys.Register(r.Context(), r.Who.Tenant, who, body.CredentialID, body.Possession, body.Consent,
		account.Visit{Program: r.Program})
	if err != nil {
		return answer{}, err
	}
	view, err := s.describeVoterKey(r.Context(), made)
	return jsonAnswer(http.StatusCreated, view), err
}

func (s *Server) retireVoterKey(r *request) (answer, error) {
	return noContent(s.RetireVoterKey(r.Context(), r.Caller, r.PathParameter("credential")))
}

// RetireVoterKey retires a voter key of the caller, or, if the caller is an owner, of another member.
func (s *Server) RetireVoterKey(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.Vote); err != nil {
		return err
	}
	var credential signedvote.Bytes
	if credential.UnmarshalText([]byte(name)) != nil {
		return fault.New(fault.NotFound, "Not found")
	}
	who := c.Who.Account
	err := s.VoterKeys.Retire(ctx, c.Who.Tenant, who, who, credential)
	if fault.Is(err, fault.NotFound) && c.Who.Role.May(account.Own) {
		if who, err = s.VoterKeys.FindAccount(ctx, c.Who.Tenant, credential); err == nil {
			err = s.VoterKeys.Retire(ctx, c.Who.Tenant, c.Who.Account, who, credential)
		}
	}
	return err
}
