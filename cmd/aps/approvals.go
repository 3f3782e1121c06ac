package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
)

type approvalsCommand struct {
	List    approvalsListCommand `cmd:"" help:"Print what waits for a decision."`
	Show    approvalsShowCommand `cmd:"" help:"Print one approval with all that is decided on."`
	Approve approveCommand       `cmd:"" help:"Agree to an action, after its tool and payload were shown."`
	Deny    denyCommand          `cmd:"" help:"Refuse an action; one refusal is final."`
}

// personFlags name the person that decides. Passwords are never flags, because flags show in the list of processes.
type personFlags struct {
	URL          string          `name:"url" env:"APS_URL" required:"" placeholder:"URL" help:"Base URL of the service."`
	IDURL        string          `name:"id-url" env:"APS_ID_URL" placeholder:"URL" help:"Base URL of the identity calls; default: --url."`
	Email        string          `env:"APS_EMAIL" required:"" help:"Your e-mail address. APS_PASSWORD holds the password, else it is read from standard input."`
	Organization id.Organization `name:"org" env:"APS_ORG" placeholder:"UUID" help:"Organization id, for members of several."`
}

// consoleApproval is an approval as the console shows it.
type consoleApproval struct {
	ID           string         `json:"approval_id"`
	Status       string         `json:"status"`
	Agent        id.Agent       `json:"agent_id"`
	Tool         id.Tool        `json:"tool_name"`
	Payload      jsontext.Value `json:"payload"`
	ActionDigest id.Hash        `json:"action_digest"`
	Quorum       int            `json:"quorum"`
	ExpiresAt    id.Instant     `json:"expires_at"`
	Policy       struct {
		Reason string `json:"reason"`
	} `json:"policy"`
	Votes []struct {
		Email   string `json:"email"`
		Vote    string `json:"vote"`
		Comment string `json:"comment"`
	} `json:"votes"`
}

type approvalsListCommand struct {
	personFlags
	Status string `default:"pending" help:"pending, approved, consumed, denied, expired, cancelled, revoked or invalidated."`
}

func (c *approvalsListCommand) Run(ctx context.Context, s *streams) error {
	p, err := c.signIn(ctx, s)
	if err != nil {
		return err
	}
	for after := ""; ; {
		var page struct {
			Approvals []consoleApproval `json:"approvals"`
			Next      *string           `json:"next"`
		}
		path := "/approvals?status=" + url.QueryEscape(c.Status) + "&after=" + url.QueryEscape(after)
		if err := p.callConsole(ctx, http.MethodGet, path, nil, &page); err != nil {
			return err
		}
		for i := range page.Approvals {
			if err := page.Approvals[i].printSummary(s); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		after = *page.Next
	}
}

func (a *consoleApproval) printSummary(s *streams) error {
	if s.json {
		return s.printJSON(a)
	}
	return s.printLine("%s  %-10s %s  %s  until %s", printableText(a.ID), printableText(a.Status),
		printableText(string(a.Agent)), printableText(string(a.Tool)), a.ExpiresAt)
}

type approvalsShowCommand struct {
	personFlags
	ID string `arg:"" help:"Approval id."`
}

func (c *approvalsShowCommand) Run(ctx context.Context, s *streams) error {
	p, err := c.signIn(ctx, s)
	if err != nil {
		return err
	}
	a, err := p.fetchApproval(ctx, c.ID)
	if err != nil {
		return err
	}
	return a.printDetails(s)
}

func (a *consoleApproval) printDetails(s *streams) error {
	if s.json {
		return s.printJSON(a)
	}
	agreed := 0
	for _, v := range a.Votes {
		if v.Vote == "approve" {
			agreed++
		}
	}
	err := s.printLine("approval  %s\nstatus    %s, %d of %d agreed\nagent     %s\ntool      %s\n"+
		"payload   %s\nreason    %s\nuntil     %s\naction    %s",
		printableText(a.ID), printableText(a.Status), agreed, a.Quorum, printableText(string(a.Agent)),
		printableText(string(a.Tool)), printableText(string(a.Payload)), printableText(a.Policy.Reason),
		a.ExpiresAt, a.ActionDigest)
	for _, v := range a.Votes {
		err = errors.Join(err, s.printLine("vote      %s by %s %s", printableText(v.Vote), printableText(v.Email),
			printableText(v.Comment)))
	}
	return err
}

type voteFlags struct {
	personFlags
	ID      string `arg:"" help:"Approval id."`
	Action  string `required:"" placeholder:"HEX" help:"Digest of the action that you decide on, as show prints it: nothing else is decided."`
	Comment string `help:"Why."`
}

type approveCommand struct{ voteFlags }

func (c *approveCommand) Run(ctx context.Context, s *streams) error {
	return c.castVote(ctx, s, "approve")
}

type denyCommand struct{ voteFlags }

func (c *denyCommand) Run(ctx context.Context, s *streams) error { return c.castVote(ctx, s, "deny") }

func (c *voteFlags) castVote(ctx context.Context, s *streams, vote string) error {
	action, err := id.ParseHash(c.Action)
	if err != nil {
		return fmt.Errorf("--action: %w", err)
	}
	p, err := c.signIn(ctx, s)
	if err != nil {
		return err
	}
	ballot := struct {
		Vote    string  `json:"vote"`
		Comment string  `json:"comment"`
		Action  id.Hash `json:"action_digest"`
	}{vote, c.Comment, action}
	var after consoleApproval
	if err := p.callConsole(ctx, http.MethodPost, "/approvals/"+url.PathEscape(c.ID)+"/votes", ballot,
		&after); err != nil {
		return err
	}
	return after.printDetails(s)
}

// person is a member with a session.
type person struct {
	base string
	http *http.Client
}

// personTimeout bounds one call.
const personTimeout = 30 * time.Second

func (f *personFlags) signIn(ctx context.Context, s *streams) (*person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	password := os.Getenv("APS_PASSWORD")
	if password == "" {
		line, err := bufio.NewReader(io.LimitReader(s.in, 4<<10)).ReadString('\n')
		if password = strings.TrimRight(line, "\r\n"); password == "" {
			return nil, errors.Join(errors.New("no password: set APS_PASSWORD or write it to standard input"), err)
		}
	}
	identity := f.IDURL
	if identity == "" {
		identity = f.URL
	}
	p := &person{base: strings.TrimRight(f.URL, "/"), http: &http.Client{Jar: jar, Timeout: personTimeout}}
	body := map[string]any{"email": f.Email, "password": password}
	if f.Organization != (id.Organization{}) {
		body["organization_id"] = f.Organization
	}
	if err := p.callJSON(ctx, http.MethodPost, strings.TrimRight(identity, "/")+"/v1/id/auth/login", body,
		nil); err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	return p, nil
}

func (p *person) fetchApproval(ctx context.Context, name string) (a consoleApproval, err error) {
	return a, p.callConsole(ctx, http.MethodGet, "/approvals/"+url.PathEscape(name), nil, &a)
}

func (p *person) callConsole(ctx context.Context, method, path string, body, answer any) error {
	return p.callJSON(ctx, method, p.base+"/v1/console"+path, body, answer)
}

// maxConsoleAnswer is the size in bytes of the largest answer that is read.
const maxConsoleAnswer = 64 << 20

func (p *person) callJSON(ctx context.Context, method, address string, body, answer any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxConsoleAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		var told struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(text, &told) // a proxy's page says nothing that can be shown
		refusal := fmt.Errorf("%d %s", response.StatusCode, printableText(told.Error))
		if response.StatusCode/100 == 4 {
			return &negative{refusal}
		}
		return refusal
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
