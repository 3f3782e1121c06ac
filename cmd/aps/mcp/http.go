package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/listen"
	"github.com/agentledger/agentledger/internal/secret"
)

// tokenVariable names the variable with the bearer token of HTTP clients.
const tokenVariable = "APS_MCP_TOKEN"

// headerTime bounds the reading of a request's header. endTime bounds the wait for open requests at the end.
const (
	headerTime = 10 * time.Second
	endTime    = 5 * time.Second
)

// tokens are the bearer tokens of clients by HTTP.
type tokens struct {
	common  string            // of every client, "" for none
	callers map[string]string // principals by token
}

func (t tokens) none() bool { return t.common == "" && len(t.callers) == 0 }

// readTokens reads the tokens, from files and from the environment.
func readTokens(s Settings) (t tokens, err error) {
	t.common = secret.Getenv(tokenVariable)
	if t.callers, err = s.tokens(); err == nil && t.common != "" && len(t.callers) > 0 {
		err = errors.New("two kinds of tokens: set either callers or " + tokenVariable)
	}
	return t, err
}

// serveHTTP serves clients until ctx ends.
func (c *serveCommand) serveHTTP(ctx context.Context, g *gateway.Gateway, s Settings, t tokens) error {
	socket, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	defer socket.Close()
	if at, ok := socket.Addr().(*net.TCPAddr); t.none() && !(ok && at.IP.IsLoopback()) {
		return errors.New("--listen: other machines can reach this address: set a bearer token in " + tokenVariable + ", or set callers")
	}
	handler := listen.New(ctx, listen.Options{
		Token: t.common, Callers: t.callers, Origins: s.origins(), Principal: s.Principal.Header, MaxBytes: s.MaxMessageBytes,
		Serve: func(ctx context.Context, caller gateway.Caller, origin string) error {
			err := g.Serve(ctx, caller, origin)
			if err != nil {
				printTrouble(fmt.Errorf("session: %w", err))
			}
			return err
		},
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime}
	_, _ = fmt.Fprintf(os.Stderr, "aps mcp: serving http://%s/mcp\n", socket.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(socket) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		handler.Wait()
		ending, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		err = server.Shutdown(ending)
	}
	return err
}
