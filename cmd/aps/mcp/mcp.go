// Package mcp is the command aps mcp: the gateway in front of MCP servers.
//
// Invariants:
//
//   - Only MCP messages are written to standard output; everything else goes to standard error.
//   - The agent's key, the ingest key and the tokens of clients and of other servers reach no server and no message. On
//     Linux a server can't read them from this process either (secret.ProtectProcess).
//   - No tool runs without a decision of the service.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/childprocess"
	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/upstream"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Command is aps mcp.
type Command struct {
	Serve     serveCommand               `cmd:"" default:"withargs" help:"Serve as a gateway in front of MCP servers (the default)."`
	Approvals people.MCPApprovalsCommand `cmd:"" help:"Serve approvals as an MCP server, for approvers."`
}

// agentFlags name the service, the agent and its key. The service is not --url, because that is an MCP server's.
type agentFlags struct {
	Service string `name:"service" env:"APS_URL" placeholder:"URL" help:"Address of the service." type:"url"`
	Token   string `env:"APS_TOKEN" placeholder:"KEY" help:"Ingest key. Refused as a flag, which the servers could read: set APS_TOKEN or --token-file." type:"token"`
	// TokenFile can name a descriptor, /dev/fd/N.
	TokenFile string `env:"APS_TOKEN_FILE" placeholder:"FILE" help:"File with the ingest key, for example /dev/fd/3."`
	flags.Signer
	flags.Subject
}

type serveCommand struct {
	agentFlags
	Name    string   `arg:"" optional:"" help:"Name of the server, part of its tools' names." type:"servername" expected:"a name of letters, digits and -, such as files"`
	Program []string `arg:"" optional:"" passthrough:"" help:"Program of the server and its arguments, after --."`

	URL        string        `name:"url" placeholder:"URL" help:"Address of the server, instead of a program." type:"url"`
	Listen     string        `placeholder:"HOST:PORT" help:"Serve clients over streamable HTTP instead of standard input." type:"listen"`
	Config     string        `placeholder:"FILE" help:"Configuration with several servers." type:"existingfile" expected:"a configuration file"`
	State      string        `env:"APS_MCP_STATE" type:"path" placeholder:"DIR" help:"Folder of the journal."`
	Principal  string        `env:"APS_PRINCIPAL" help:"Name of the user or system for whom calls are made (actor_principal)."`
	OnBehalfOf string        `env:"APS_ON_BEHALF_OF" placeholder:"SUBJECT" help:"Subject on whose behalf calls are made, as --issuer names it. The events are signed with it."`
	Issuer     string        `env:"APS_ISSUER" placeholder:"URL" help:"Issuer of the subject of --on-behalf-of."`
	Wait       time.Duration `default:"50s" help:"How long a call waits for approval."`
}

// Run implements the command.
func (c *serveCommand) Run(ctx context.Context, t *people.Terminal) error {
	if err := flags.CheckHidden(c.Token); err != nil {
		return err
	}
	if !signal.Ignored(syscall.SIGHUP) { // the end of a terminal ends the servers in order too
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	settings, err := c.loadSettings()
	if err != nil {
		return err
	}
	tokens, err := readTokens(settings)
	if err != nil {
		return err
	}
	service, err := c.newClient() // before a program starts, because the key can be in a descriptor
	if err != nil {
		return err
	}
	signer, closeSigner, err := c.OpenSigner()
	if err != nil {
		return err
	}
	defer closeSigner()
	subject, err := c.subject(settings)
	if err != nil {
		return err
	}
	g, closeState, err := c.openGateway(settings, service, signer, subject)
	if err != nil {
		return err
	}
	defer closeState()
	if err := settings.dropSecrets(); err != nil {
		return err
	}
	if err := g.RecordInterrupted(ctx); err != nil {
		return err
	}
	stop := startSending(ctx, g)
	if c.Listen != "" {
		err = c.serveHTTP(ctx, g, settings, tokens)
	} else {
		err = g.Serve(ctx, message.NewLines(t.In, t.Out, settings.MaxMessageBytes), "")
	}
	stop()
	return errors.Join(err, flushResults(g))
}

// subject returns on whose behalf calls are made, or nil.
func (c *serveCommand) subject(s Settings) (*event.OnBehalfOf, error) {
	of, err := c.Subject.Name(c.OnBehalfOf, c.Issuer)
	if of != nil && len(s.Callers) > 0 {
		return nil, errors.New("--on-behalf-of names one user: callers are not allowed")
	}
	return of, err
}

// loadSettings returns the configuration of the file, or of the flags.
func (c *serveCommand) loadSettings() (Settings, error) {
	program := c.Program
	if len(program) > 0 && program[0] == "--" {
		program = program[1:]
	}
	if c.Config != "" {
		if c.Name != "" || c.URL != "" {
			return Settings{}, errors.New("--config names the servers: NAME, a program and --url are not allowed")
		}
		s, err := LoadSettings(c.Config)
		if err != nil {
			return s, fmt.Errorf("--config: expected a JSON file with servers: %w", err)
		}
		s.Principal.Fixed = cmp.Or(c.Principal, s.Principal.Fixed)
		return s, err
	}
	if c.Name == "" || (len(program) == 0) == (c.URL == "") {
		return Settings{}, errors.New("NAME with either --url or a program after --, or --config is required")
	}
	s := Settings{Servers: map[string]ServerSettings{c.Name: {Command: program, URL: c.URL}}}
	s.Principal.Fixed = c.Principal
	s.Wait = c.Wait.String()
	return s, s.check()
}

func (c *serveCommand) openGateway(
	s Settings, service *client.Client, signer *client.Signer, subject *event.OnBehalfOf,
) (g *gateway.Gateway, closeState func(), err error) {
	folder, journal, err := openState(c.stateFolder(s))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, journal.Close())
		}
	}()
	questions, err := gateway.OpenQuestions(filepath.Join(folder, "questions.json"), 0)
	if err != nil {
		return nil, nil, err
	}
	config, err := s.gatewayConfig()
	if err != nil {
		return nil, nil, err
	}
	config.Client, config.Signer, config.Journal, config.Questions = service, signer, journal, questions
	if config.Pins, err = gateway.OpenPins(filepath.Join(c.stateFolder(s), "tools")); err != nil {
		return nil, nil, err
	}
	config.OnError = printTrouble
	config.OnBehalfOf = subject
	config.SharedByCallers = c.Listen != ""
	g, err = gateway.New(config)
	return g, func() { _ = journal.Close() }, err
}

func printTrouble(err error) {
	_, _ = fmt.Fprintln(os.Stderr, "aps mcp: "+textcheck.Printable(err.Error()))
}

func (f agentFlags) newClient() (*client.Client, error) {
	if f.Service == "" {
		return nil, errors.New("no service: set --service or APS_URL")
	}
	token := f.Token
	if f.TokenFile != "" {
		if token != "" {
			return nil, errors.New("two ingest keys: set either APS_TOKEN or --token-file")
		}
		var err error
		if token, err = secret.ReadLine(f.TokenFile); err != nil {
			return nil, fmt.Errorf("--token-file: expected a file with an ingest key: %w", err)
		}
	}
	return flags.Service{URL: f.Service, Token: token}.NewRetryingClient(client.Retry{}, f.Subject)
}

func (c *serveCommand) stateFolder(s Settings) string {
	if c.State != "" {
		return c.State
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "agentledger", "mcp", strings.Join(s.serverNames(), "+"))
}

// maxGateways is the number of gateways that may use one folder at once. Each has a numbered folder in it.
const maxGateways = 64

// openState opens the first journal that no other gateway holds.
func openState(folder string) (string, *guard.Journal, error) {
	for i := range maxGateways {
		own := filepath.Join(folder, fmt.Sprintf("%02d", i))
		journal, err := guard.OpenJournal(own, guard.JournalOptions{})
		if !errors.Is(err, guard.ErrJournalInUse) {
			return own, journal, err
		}
	}
	return "", nil, fmt.Errorf("open %s: %d gateways use it", folder, maxGateways)
}

// startSending sends results in the background until stop is called.
func startSending(ctx context.Context, g *gateway.Gateway) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { g.SendResults(ctx) })
	return func() {
		cancel()
		sending.Wait()
	}
}

// flushTime bounds the final sending of results. The rest stays in the journal for the next start.
const flushTime = 5 * time.Second

func flushResults(g *gateway.Gateway) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	return g.Flush(ctx)
}

// connectTo returns the connection with one server.
func connectTo(s ServerSettings, maxBytes int) (func(context.Context) (upstream.Conn, error), error) {
	if s.URL == "" {
		program := childprocess.Command{Args: s.Command, Env: s.Env, Dir: s.Dir, User: s.User, Stderr: os.Stderr}
		return upstream.Command{Command: program, MaxBytes: maxBytes}.Start, nil
	}
	headers := map[string]string{}
	maps.Copy(headers, s.Headers)
	for name, variable := range s.HeadersEnv {
		value, ok := os.LookupEnv(variable)
		if !ok {
			return nil, fmt.Errorf("headers_env: %s is not set", variable)
		}
		headers[name] = secret.TrimLineEnd(value)
	}
	return upstream.Remote{URL: s.URL, Headers: headers, MaxBytes: maxBytes}.Connect, nil
}
