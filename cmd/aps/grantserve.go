package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/grant/granthttp"
)

type grantServeCommand struct {
	Config  string `arg:"" help:"File with the declared tools, - for standard input." type:"input" expected:"a file with the declared tools, or - for standard input"`
	Listen  string `default:"127.0.0.1:9191" placeholder:"ADDRESS" help:"Address at which the proxy asks." type:"listen"`
	Subject string `placeholder:"NAME" name:"subject-header" help:"Header with on_behalf_of as JSON, which the proxy must set or remove in each request. Default: nobody." type:"id" expected:"the name of a header"`
	Nginx   string `placeholder:"@LOCATION" help:"Named location of nginx that passes permitted requests on." type:"location"`
}

func (*grantServeCommand) Help() string {
	return `The file is JSON: the keys of the grants, the requests that need one, and the requests that need none.

{"keys": ["VKEY"], "routes": [{"route": "POST /refunds", "tool": "shop.refund"}], "open": ["GET *"]}

The proxy must send the whole body of each request. Each permitted request uses its grant up, so only the proxy may reach ` +
		`the address. See docs/guides/grants-at-the-tool.md.`
}

// Bounds of the server. Its requests are the proxy's, with its clients' headers.
const (
	maxGrantConfig    = 4 << 20
	maxProxiedHeader  = 256 << 10
	grantRequestTime  = 30 * time.Second
	grantShutdownTime = 5 * time.Second
)

func (c *grantServeCommand) Run(ctx context.Context, s *streams) error {
	text, err := s.readInput(c.Config, maxGrantConfig)
	if err != nil {
		return err
	}
	config, err := granthttp.ParseConfig(text)
	if err != nil {
		return err
	}
	if c.Subject != "" {
		config.OnBehalfOf = granthttp.SubjectHeader(c.Subject)
	}
	checker, err := granthttp.New(config)
	if err != nil {
		return err
	}
	socket, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	_, _ = fmt.Fprintf(s.err, "aps: checking grants at http://%s\n", socket.Addr())
	server := &http.Server{
		Handler: checker.Authorizer(c.Nginx), MaxHeaderBytes: maxProxiedHeader,
		ReadTimeout: grantRequestTime, WriteTimeout: grantRequestTime, IdleTimeout: 10 * grantRequestTime,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(socket) }()
	select {
	case err = <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.Background(), grantShutdownTime)
		defer cancel()
		return server.Shutdown(ending)
	}
}
