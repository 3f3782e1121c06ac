package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/syncs"
)

// serviceFlags name the service.
type serviceFlags struct {
	URL   string `name:"url" env:"APS_URL" required:"" placeholder:"URL" help:"Base URL of the service." type:"url"`
	IDURL string `name:"id-url" env:"APS_ID_URL" placeholder:"URL" help:"Base URL of /v1/id; default: --url." type:"url"`
}

func (f *serviceFlags) identityURL() string { return strings.TrimRight(cmp.Or(f.IDURL, f.URL), "/") }

// personFlags name the user. Passwords and tokens are never flags, because the list of processes shows flags. The password
// is in APS_PASSWORD or on standard input, and APS_RECOVERY_CODE contains a recovery code for an account with a second
// factor. Without an address, the token in APS_CONSOLE_TOKEN or the session of aps login is used.
type personFlags struct {
	serviceFlags
	Email string          `env:"APS_EMAIL" help:"Your e-mail address, to sign in with the password. Default: the session of aps login." type:"email"`
	Org   id.Organization `name:"org" env:"APS_ORG" placeholder:"UUID" help:"Organization id, for members of several."`
}

// openSession returns the session of a command: of the token, of the address, or the saved one.
func (f *personFlags) openSession(ctx context.Context, t *Terminal) (*session, error) {
	s := newSession(f.URL)
	if s.token = secret.Getenv("APS_CONSOLE_TOKEN"); s.token != "" {
		return s, nil
	}
	if f.Email != "" {
		return s, f.signIn(ctx, t, s)
	}
	var err error
	s.stored = true
	if s.cookie, err = readKept(f.URL); err != nil {
		return nil, err
	}
	if s.cookie == nil {
		return nil, errors.New("not signed in: run aps login, or set APS_EMAIL or APS_CONSOLE_TOKEN")
	}
	return s, nil
}

// signIn opens a session with the password.
func (f *personFlags) signIn(ctx context.Context, t *Terminal, s *session) error {
	syncs.BeginStep(ctx, "", "") // the password may be typed
	password, err := readPassword(ctx, t)
	if err != nil {
		return err
	}
	syncs.BeginStep(ctx, "waiting for the service", "")
	body := map[string]any{"email": f.Email, "password": password}
	if f.Org != (id.Organization{}) {
		body["organization_id"] = f.Org
	}
	var answer struct {
		SecondFactor []string `json:"second_factor"`
	}
	cookies, err := s.call(ctx, http.MethodPost, f.identityURL()+"/v1/id/auth/login", body, &answer)
	if err == nil && len(answer.SecondFactor) > 0 {
		cookies, err = f.bringCode(ctx, s, cookies)
	}
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	for _, c := range cookies {
		if isSession := c.Name == "__Host-agentledger" || c.Name == "agentledger_session"; isSession && c.Value != "" {
			s.cookie = c
		}
	}
	if s.cookie == nil {
		return errors.New("sign in: the service sent no session")
	}
	return nil
}

// bringCode completes a sign-in that lacks its second factor with a recovery code.
func (f *personFlags) bringCode(ctx context.Context, s *session, cookies []*http.Cookie) ([]*http.Cookie, error) {
	code := secret.Getenv("APS_RECOVERY_CODE")
	if code == "" || len(cookies) == 0 {
		return nil, errors.New("the account has a second factor: set APS_RECOVERY_CODE to a recovery code")
	}
	pending := *s
	pending.cookie = cookies[0]
	return pending.call(ctx, http.MethodPost, f.identityURL()+"/v1/id/auth/recovery-code",
		map[string]any{"code": code}, nil)
}

func readPassword(ctx context.Context, t *Terminal) (string, error) {
	if password := secret.Getenv("APS_PASSWORD"); password != "" {
		return password, nil
	}
	password, err := commandline.ReadSecret(ctx, t.In, t.Err, "Password")
	if password == "" {
		return "", errors.Join(errors.New("no password: set APS_PASSWORD or write it to standard input"), err)
	}
	return password, err
}

// LoginCommand is aps login.
type LoginCommand struct{ personFlags }

// Run implements the command.
func (c *LoginCommand) Run(ctx context.Context, t *Terminal) error {
	if c.Email == "" {
		return errors.New("--email is required: expected your e-mail address (or APS_EMAIL)")
	}
	s := newSession(c.URL)
	if err := c.signIn(ctx, t, s); err != nil {
		return err
	}
	path, err := keepSession(c.URL, s.cookie)
	if err != nil {
		return fmt.Errorf("keep the session: %w", err)
	}
	return t.PrintLine("signed in; the session is kept in %s", path)
}

// LogoutCommand is aps logout.
type LogoutCommand struct{ serviceFlags }

// Run ends the saved session at the service and removes it from the file. A session that the service no longer knows has
// ended already.
func (c *LogoutCommand) Run(ctx context.Context, t *Terminal) error {
	cookie, err := readKept(c.URL)
	if err != nil {
		return err
	}
	if cookie == nil {
		return t.PrintLine("not signed in")
	}
	s := newSession(c.URL)
	s.cookie = cookie
	_, err = s.call(ctx, http.MethodPost, c.identityURL()+"/v1/id/auth/logout", nil, nil)
	if err != nil && !isRefusal(err, http.StatusUnauthorized) {
		return fmt.Errorf("sign out: %w", err)
	}
	if err := dropSession(c.URL); err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return t.PrintLine("signed out")
}
