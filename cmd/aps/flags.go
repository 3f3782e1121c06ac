package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// serviceFlags say which service to talk to.
type serviceFlags struct {
	URL   string `name:"url" env:"APS_URL" placeholder:"URL" help:"Base URL of the service."`
	Token string `env:"APS_TOKEN" placeholder:"KEY" help:"Ingest key. Better in the environment: flags show in the list of processes."`
}

// newClient returns a client that says on w when a try has failed and it waits for a second or more.
func (f serviceFlags) newClient(w io.Writer) (*client.Client, error) {
	return f.newNotifyingClient(func(err error, wait time.Duration) {
		if wait >= time.Second {
			_, _ = fmt.Fprintf(w, "aps: trying again in %s: %s\n", wait.Round(time.Second), err)
		}
	})
}

// newNotifyingClient returns a client that tells notify of each try that has failed and is followed by another one.
func (f serviceFlags) newNotifyingClient(notify func(err error, wait time.Duration)) (*client.Client, error) {
	if f.URL == "" {
		return nil, errors.New("no service: set --url or APS_URL")
	}
	return client.New(client.Config{BaseURL: f.URL, Token: f.Token, Retry: client.Retry{Notify: notify}})
}

// nameFlags say for which agent and key something is made.
type nameFlags struct {
	Org   id.Organization `env:"APS_ORG" placeholder:"UUID" help:"Organization id."`
	Agent string          `env:"APS_AGENT" placeholder:"ID" help:"Agent id."`
	KeyID string          `env:"APS_KEY_ID" placeholder:"ID" help:"Key id."`
}

// fullIdentity returns the names, all of which must be there.
func (f nameFlags) fullIdentity() (client.Identity, error) {
	who, err := f.agentIdentity()
	if err == nil && f.KeyID == "" {
		err = errors.New("no key id: set --key-id or APS_KEY_ID")
	}
	return who, err
}

// agentIdentity returns the names, of which the key's may be missing.
func (f nameFlags) agentIdentity() (client.Identity, error) {
	switch {
	case f.Org == id.Organization{}:
		return client.Identity{}, errors.New("no organization: set --org or APS_ORG")
	case f.Agent == "":
		return client.Identity{}, errors.New("no agent: set --agent or APS_AGENT")
	}
	return client.Identity{Organization: f.Org, Agent: id.Agent(f.Agent), Key: id.Key(f.KeyID)}, nil
}

// signerFlags name the agent and the key that signs.
type signerFlags struct {
	nameFlags
	KeyFile string `env:"APS_KEY_FILE" placeholder:"FILE" help:"File with the private key: base64 of the 32-byte seed."`
}

func (f signerFlags) loadSigner() (*client.Signer, error) {
	who, err := f.fullIdentity()
	if err != nil {
		return nil, err
	}
	if f.KeyFile == "" {
		return nil, errors.New("no private key: set --key-file or APS_KEY_FILE")
	}
	seed, err := readSeed(f.KeyFile)
	if err != nil {
		return nil, err
	}
	return client.NewSigner(who, seed)
}

// maxKeyFile is the size in bytes of the largest key file that is read.
const maxKeyFile = 4 << 10

func readSeed(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	seed, err := client.ParseSeed(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", file, err)
	}
	return seed, nil
}
