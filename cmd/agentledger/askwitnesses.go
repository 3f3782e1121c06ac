package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/config"
)

// askWitnessesCommand has the server that runs ask the witnesses of a log at once, also
// those that refused the log or are left alone.
type askWitnessesCommand struct {
	Slug               string `help:"The organization's slug or id." required:""`
	Server             string `help:"Address of the identity listener of the server that runs, http://127.0.0.1:8091; it needs the platform secret." required:"" placeholder:"URL"`
	Data               string `help:"Data directory of that server, for its platform secret." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	PlatformSecretFile string `help:"File of the platform secret. Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
}

// askTimeout bounds the call. The server only notes which witnesses to ask.
const askTimeout = 10 * time.Second

// Run prints the witnesses that are asked. Their answers are in the console.
func (c askWitnessesCommand) Run(ctx context.Context, out terminal) error {
	var answer struct {
		Asked []string `json:"asked"`
	}
	err := platformCall{
		server: c.Server, store: config.Store{Data: c.Data}, secretFile: c.PlatformSecretFile, timeout: askTimeout,
		method: http.MethodPost, path: "/organizations/" + url.PathEscape(c.Slug) + "/witnesses/ask",
	}.callServer(ctx, &answer)
	if err != nil {
		return fmt.Errorf("ask witnesses: %w", err)
	}
	if len(answer.Asked) == 0 {
		_, err = fmt.Fprintf(out.stdout, "%s: no witnesses are configured\n", c.Slug)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "%s: asking %s\n", c.Slug, strings.Join(answer.Asked, ", "))
	return err
}
