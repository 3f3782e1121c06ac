package main

import (
	"errors"

	"github.com/agentledger/agentledger/client/signer"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// signerCommand holds the key of an agent, as a program of another user; see docs/guides/signer.md.
type signerCommand struct {
	KeyID   id.Key `required:"" env:"APS_KEY_ID" placeholder:"ID" help:"Key ID. Requests for another key are refused." type:"keyid"`
	KeyFile string `required:"" type:"path" placeholder:"FILE" help:"File with the private key."`
}

func (c *signerCommand) Run(s *streams) error {
	if c.KeyID == "" || c.KeyFile == "" {
		return errors.New("--key-id and --key-file are required")
	}
	seed, err := flags.ReadSeed("--key-file", c.KeyFile)
	if err != nil {
		return err
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return err
	}
	return signer.Serve(s.in, s.out, c.KeyID, private.Holder())
}
