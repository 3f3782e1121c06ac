package main

import (
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/durable"
)

type keygenCommand struct {
	Out   string `xor:"source" placeholder:"FILE" help:"Write the private key to a new file of mode 0600 instead of printing it." type:"output"`
	From  string `xor:"source" placeholder:"FILE" help:"Read this private key instead of generating one." type:"input" expected:"a file with a private key"`
	Proof bool   `help:"Create the proof that registers the public key for --org and --agent, with --key-id or with an ID that the service assigns."`
	flags.Names
}

// keyOutput is the output of keygen.
type keyOutput struct {
	PrivateKey string `json:"private_key_b64,omitzero"` // empty if it is in a file
	File       string `json:"file,omitzero"`
	PublicKey  string `json:"public_key_b64"`
	Multikey   string `json:"multikey"`
	DID        string `json:"did"`
	Proof      string `json:"proof_b64,omitzero"`
}

func (c *keygenCommand) Run(s *streams) error {
	seed, err := c.makeOrReadSeed()
	if err != nil {
		return err
	}
	out, err := c.describeKey(seed)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := writeKeyFile(c.Out, seed); err != nil {
			return err
		}
		out.File = c.Out
	} else if c.From == "" {
		out.PrivateKey = base64.StdEncoding.EncodeToString(seed)
	}
	if s.json {
		return s.printJSON(out)
	}
	return out.printRows(s)
}

// makeOrReadSeed returns the seed of the given key, or of a new one.
func (c *keygenCommand) makeOrReadSeed() ([]byte, error) {
	if c.From != "" {
		return flags.ReadSeed("--from", c.From)
	}
	seed := edkey.NewPrivate().Seed()
	return seed[:], nil
}

func (c *keygenCommand) describeKey(seed []byte) (keyOutput, error) {
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return keyOutput{}, err
	}
	public := private.Public()
	out := keyOutput{PublicKey: public.String(), Multikey: did.Multikey(public.Bytes()),
		DID: did.KeyDID(public.Bytes())}
	if !c.Proof {
		return out, nil
	}
	who, err := c.AgentIdentity()
	if err != nil {
		return keyOutput{}, err
	}
	out.Proof, err = client.ProveKey(who, seed)
	return out, err
}

// writeKeyFile creates a file that only its owner can read. It never replaces a file.
func writeKeyFile(file string, seed []byte) error {
	if err := durable.CreateFile(file, []byte(base64.StdEncoding.EncodeToString(seed)+"\n")); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

func (o keyOutput) printRows(s *streams) error {
	for _, row := range []struct{ name, value string }{
		{"private key", o.PrivateKey}, {"file", o.File},
		{"public key", o.PublicKey},
		{"multikey", o.Multikey},
		{"did", o.DID},
		{"proof", o.Proof},
	} {
		if row.value == "" {
			continue
		}
		if err := s.printLine("%-12s %s", row.name, row.value); err != nil {
			return err
		}
	}
	return nil
}
