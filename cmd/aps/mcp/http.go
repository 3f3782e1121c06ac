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

// tokenVariable holds the bearer token of clients by HTTP.
const tokenVariable = "APS_MCP_TOKEN"

// headerTime bounds the reading of a request's header. endTime bounds the end of open requests.
const (
	headerTime = 10 * time.Second
	endTime    = 5 * time.Second
)

// serveHTTP serves clients until ctx ends.
func (c *serveCommand) serveHTTP(ctx context.Context, g *gateway.Gateway, s Settings) error {
	token := secret.Getenv(tokenVariable)
	socket, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	defer socket.Close()
	if at, ok := socket.Addr().(*net.TCPAddr); token == "" && !(ok && at.IP.IsLoopback()) {
		return errors.New("--listen: other machines reach this address: put a bearer token into " + tokenVariable)
	}
	handler := listen.New(ctx, listen.Options{
		Token: token, Origins: s.origins(), Principal: s.Principal.Header, MaxBytes: s.MaxMessageBytes,
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
