package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/secret"
)

// Settings is the configuration file. Unknown members are an error.
type Settings struct {
	Servers    map[string]ServerSettings `json:"servers"`
	Record     []RecordSettings          `json:"record"` // the first that matches a tool applies; default: record everything
	Hide       []string                  `json:"hide"`
	HideDenied bool                      `json:"hide_denied"`
	Principal  PrincipalSettings         `json:"principal"`

	// RefuseChangedTools refuses calls of a tool whose definition has changed since its first use, until AcceptedTools has
	// the digest of the new one.
	RefuseChangedTools bool                `json:"refuse_changed_tools"`
	AcceptedTools      map[id.Tool]id.Hash `json:"accepted_tools"`

	// Callers are the clients by HTTP, by principal. If there are any, each request needs the token of one.
	Callers map[string]CallerSettings `json:"callers"`

	AllowedOrigins  []string `json:"allowed_origins"`   // of web pages that may use servers without their own list
	Wait            string   `json:"wait"`              // duration, for example "50s"
	MaxMessageBytes int      `json:"max_message_bytes"` // default 16 MiB
	MaxCalls        int      `json:"max_calls"`         // concurrent calls of a session; default 128
	MaxWaiting      int      `json:"max_waiting"`       // calls of a session that wait for approval; default 16
}

// ServerSettings are one MCP server: a program or an address.
type ServerSettings struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"` // added to the gateway's environment without APS_…
	Dir     string            `json:"dir"`
	User    string            `json:"user"` // that the program runs as; the gateway must be root
	URL     string            `json:"url"`
	// Headers are sent with each request to URL. HeadersEnv names variables that hold such values.
	Headers    map[string]string `json:"headers"`
	HeadersEnv map[string]string `json:"headers_env"`
	// AllowedOrigins are the origins of the web pages that may use the server. If nil, Settings.AllowedOrigins apply.
	AllowedOrigins []string `json:"allowed_origins"`
}

// RecordSettings configure how calls of tools are recorded.
type RecordSettings struct {
	Tools   string   `json:"tools"`   // pattern of tool names: mcp.files.*
	Digest  bool     `json:"digest"`  // the SHA-256 of the arguments instead of the arguments
	Seen    []string `json:"seen"`    // with digest: members that are recorded nevertheless
	Output  bool     `json:"output"`  // the result, not only its SHA-256
	Receipt bool     `json:"receipt"` // ask the server for a receipt of calls without an approval too
}

// CallerSettings say where the bearer token of a client is: in a file or in a variable.
type CallerSettings struct {
	TokenFile string `json:"token_file"`
	TokenEnv  string `json:"token_env"`
}

// token returns the client's token.
func (c CallerSettings) token() (string, error) {
	if (c.TokenFile == "") == (c.TokenEnv == "") {
		return "", errors.New("either token_file or token_env")
	}
	token, err := secret.Getenv(c.TokenEnv), error(nil)
	if c.TokenFile != "" {
		token, err = secret.ReadLine(c.TokenFile)
	}
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	return token, err
}

// tokens returns the clients by their token.
func (s Settings) tokens() (map[string]string, error) {
	all := map[string]string{}
	for name, caller := range s.Callers {
		token, err := caller.token()
		if err != nil {
			return nil, fmt.Errorf("callers: %.256q: %w", name, err)
		}
		if all[token] != "" || name == "" {
			return nil, fmt.Errorf("callers: %.256q: has no name, or the token of another caller", name)
		}
		all[token] = name
	}
	return all, nil
}

// dropSecrets removes the variables that hold secrets from the environment, after these were read, so that no server
// inherits a credential of another one.
func (s Settings) dropSecrets() error {
	names := []string{"APS_TOKEN", tokenVariable}
	for _, caller := range s.Callers {
		names = append(names, caller.TokenEnv)
	}
	for _, server := range s.Servers {
		names = slices.AppendSeq(names, maps.Values(server.HeadersEnv))
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("drop %.64q from the environment: %w", name, err)
		}
	}
	return nil
}

// PrincipalSettings configure on whose behalf calls are made. The first that is present applies.
type PrincipalSettings struct {
	Meta   string `json:"meta"`   // member of the call's _meta
	Header string `json:"header"` // of the HTTP request
	Fixed  string `json:"fixed"`
}

// LoadSettings reads and checks a configuration file.
func LoadSettings(path string) (Settings, error) {
	text, err := secret.ReadSettings(path)
	if err != nil {
		return Settings{}, err
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return Settings{}, fmt.Errorf("%s begins with a byte order mark: save it as UTF-8 without one", path)
	}
	var s Settings
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := s.check(); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s Settings) check() error {
	if len(s.Servers) == 0 {
		return errors.New("servers: at least one is needed")
	}
	for name, server := range s.Servers {
		switch {
		case !gateway.ValidServerName(name):
			return fmt.Errorf("servers: %.64q: a name has letters, digits and - only", name)
		case (len(server.Command) == 0) == (server.URL == ""):
			return fmt.Errorf("servers: %s: either command or url", name)
		case server.URL != "" && server.User != "":
			return fmt.Errorf("servers: %s: user is for a command", name)
		}
		if err := checkOrigins(server.AllowedOrigins); err != nil {
			return fmt.Errorf("servers: %s: %w", name, err)
		}
	}
	if err := checkOrigins(s.AllowedOrigins); err != nil {
		return err
	}
	if _, err := s.waitTime(); err != nil {
		return err
	}
	return nil
}

// checkOrigins rejects texts that no browser sends as an Origin, because they would never match.
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin ||
			u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
			return fmt.Errorf("allowed_origins: %.256q: must be like https://app.example", origin)
		}
	}
	return nil
}

// originsOf returns the origins of the web pages that may use a server.
func (s Settings) originsOf(name string) []string {
	if own := s.Servers[name].AllowedOrigins; own != nil {
		return own
	}
	return s.AllowedOrigins
}

// origins returns the origins of the web pages that may use any server.
func (s Settings) origins() []string {
	var all []string
	for _, name := range s.serverNames() {
		all = append(all, s.originsOf(name)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s Settings) waitTime() (time.Duration, error) {
	if s.Wait == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s.Wait)
	if err != nil || d <= 0 {
		return 0, errors.New("wait: must be a duration above 0, for example 50s")
	}
	return d, nil
}

func (s Settings) serverNames() []string { return slices.Sorted(maps.Keys(s.Servers)) }

// gatewayConfig returns the part of a gateway's configuration that the settings contain.
func (s Settings) gatewayConfig() (gateway.Config, error) {
	wait, err := s.waitTime()
	if err != nil {
		return gateway.Config{}, err
	}
	c := gateway.Config{
		Hide: s.Hide, HideDenied: s.HideDenied, Wait: wait,
		Principal: gateway.Principal{
			Meta: s.Principal.Meta, Header: s.Principal.Header != "", Fixed: s.Principal.Fixed,
		},
		Bounds: gateway.Bounds{Calls: s.MaxCalls, Waiting: s.MaxWaiting},
	}
	c.RefuseChanged, c.Accepted = s.RefuseChangedTools, s.AcceptedTools
	for _, r := range s.Record {
		c.Rules = append(c.Rules, gateway.Rule{Tools: r.Tools, Digest: r.Digest, Seen: r.Seen, Output: r.Output, Receipt: r.Receipt})
	}
	for _, name := range s.serverNames() {
		connect, err := connectTo(s.Servers[name], s.MaxMessageBytes)
		if err != nil {
			return gateway.Config{}, fmt.Errorf("servers: %s: %w", name, err)
		}
		server := gateway.Server{Name: name, Connect: connect, Origins: s.originsOf(name)}
		c.Servers = append(c.Servers, server)
	}
	return c, nil
}
