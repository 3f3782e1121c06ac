package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// askWitnessesCommand has the running server ask the witnesses of a log at once, including those that refused the log or
// are skipped.
type askWitnessesCommand struct {
	Slug string `help:"The organization's slug or id." required:"" type:"slugorid"`
	runningServer
}

// Run prints the witnesses that are asked. Their answers are in the console.
func (c askWitnessesCommand) Run(ctx context.Context, out terminal) error {
	var answer struct {
		Asked []string `json:"asked"`
	}
	path := "/organizations/" + url.PathEscape(c.Slug) + "/witnesses/ask"
	err := c.platformCall(http.MethodPost, path, nil).callServer(ctx, &answer)
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
