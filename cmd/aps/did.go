package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

type didCommand struct {
	Get didGetCommand `cmd:"" default:"withargs" help:"Fetch the document of an agent, a did:key or a did:web."`
	Key didKeyCommand `cmd:"" help:"Print the did:key document of a public key, offline."`
}

type didGetCommand struct {
	Name string `arg:"" help:"Agent id or DID." type:"agentordid"`
	URL  string `name:"url" env:"APS_URL" placeholder:"URL" help:"Base URL of the service." type:"url"`
}

func (c *didGetCommand) Run(ctx context.Context, s *streams) error {
	service, err := flags.Service{URL: c.URL}.NewClient(s.err)
	if err != nil {
		return err
	}
	document, err := fetchDocument(ctx, service, c.Name)
	if err != nil {
		return err
	}
	return s.printDocument(document)
}

func fetchDocument(ctx context.Context, service *client.Client, name string) (did.Document, error) {
	if strings.HasPrefix(name, "did:") {
		return service.ResolveDID(ctx, name)
	}
	return service.AgentDID(ctx, id.Agent(name))
}

type didKeyCommand struct {
	PublicKey string `arg:"" name:"public-key" help:"Ed25519 public key: base64 of 32 bytes." type:"publickey"`
}

func (c *didKeyCommand) Run(s *streams) error {
	raw, err := base64.StdEncoding.Strict().DecodeString(c.PublicKey)
	if err != nil {
		return errors.New("public key: must be base64 of 32 bytes")
	}
	public, err := edkey.ParsePublic(raw)
	if err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	document, err := did.KeyDocument(public.Bytes())
	if err != nil {
		return err
	}
	return s.printDocument(document)
}

// printDocument prints a document, on several lines unless --json is set.
func (s *streams) printDocument(d did.Document) error {
	if s.json {
		return s.printJSON(d)
	}
	text, err := json.Marshal(d, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return s.printLine("%s", textcheck.EscapeJSON(text))
}
