// Package flags contains the flags of commands that act for an agent: which service, which agent, which key.
//
// Invariants:
//
//   - All commands share the names and environment variables of flags.
//   - Private keys are read from files or from APS_KEY, or held by another program. No flag and no error contains one.
package flags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/signer"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Service is the flags that select the service.
type Service struct {
	URL   string `name:"url" env:"APS_URL" placeholder:"URL" help:"Base URL of the service." type:"url"`
	Token string `env:"APS_TOKEN" placeholder:"KEY" help:"Ingest key. Other users can see flags: prefer APS_TOKEN. aps wrap and mcp reject the flag." type:"token"`
}

// Subject is the flag with the token that proves on whose behalf events are sent.
type Subject struct {
	SubjectTokenFile string `env:"APS_SUBJECT_TOKEN_FILE" placeholder:"FILE" help:"File with a JWT by which the service verifies on_behalf_of of the events. It is read for each request, so that it can be renewed." type:"existingfile" expected:"a file with a JWT"`
}

// Name returns what --on-behalf-of and --issuer name, or nil if there is neither of them nor a token.
func (f Subject) Name(subject, issuer string) (*event.OnBehalfOf, error) {
	switch {
	case subject == "" && issuer == "" && f.SubjectTokenFile == "":
		return nil, nil
	case subject == "" || issuer == "":
		return nil, errors.New("--on-behalf-of and --issuer are required together, and --subject-token-file requires both")
	case !event.ValidIssuer(issuer):
		return nil, errors.New("--issuer: must be an https URL without user, query and fragment, at most 512 bytes")
	case !event.ValidSubject(subject):
		return nil, errors.New("--on-behalf-of: must be 1 to 255 characters without control characters, or a SPIFFE ID")
	}
	return &event.OnBehalfOf{Issuer: issuer, Subject: subject}, nil
}

// NewClient returns a client that reports on w when an attempt has failed and it waits for a second or more.
func (f Service) NewClient(w io.Writer) (*client.Client, error) {
	return f.NewRetryingClient(client.Retry{Notify: Notify(w)}, Subject{})
}

// Notify returns a function that reports on w when an attempt has failed and the client waits for a second or more.
func Notify(w io.Writer) func(err error, wait time.Duration) {
	return func(err error, wait time.Duration) {
		if wait >= time.Second {
			_, _ = fmt.Fprintf(w, "aps: trying again in %s: %s\n", wait.Round(time.Second), textcheck.PrintableLines(err.Error()))
		}
	}
}

// NewRetryingClient returns a client that retries as configured by r, and sends the subject token if of names its file.
func (f Service) NewRetryingClient(r client.Retry, of Subject) (*client.Client, error) {
	if f.URL == "" {
		return nil, errors.New("no service: set --url or APS_URL")
	}
	c := client.Config{BaseURL: f.URL, Token: f.Token, Retry: r}
	if of.SubjectTokenFile != "" {
		c.SubjectToken = func(context.Context) (string, error) { return secret.ReadLine(of.SubjectTokenFile) }
	}
	return client.New(c)
}

// Names is the flags that name the agent and its key.
type Names struct {
	Org   id.Organization `env:"APS_ORG" placeholder:"UUID" help:"Organization id."`
	Agent string          `env:"APS_AGENT" placeholder:"ID" help:"Agent id." type:"agent"`
	KeyID string          `env:"APS_KEY_ID" placeholder:"ID" help:"Key id." type:"keyid"`
}

// FullIdentity returns the names, all of which must be set.
func (f Names) FullIdentity() (client.Identity, error) {
	who, err := f.AgentIdentity()
	if err == nil && f.KeyID == "" {
		err = errors.New("no key id: set --key-id or APS_KEY_ID")
	}
	return who, err
}

// AgentIdentity returns the names. The key ID may be empty.
func (f Names) AgentIdentity() (client.Identity, error) {
	switch {
	case f.Org == id.Organization{}:
		return client.Identity{}, errors.New("no organization: set --org or APS_ORG")
	case f.Agent == "":
		return client.Identity{}, errors.New("no agent: set --agent or APS_AGENT")
	}
	return client.Identity{Organization: f.Org, Agent: id.Agent(f.Agent), Key: id.Key(f.KeyID)}, nil
}

// Signer is the flags of the agent and the key that signs.
type Signer struct {
	Names
	KeyFile string `env:"APS_KEY_FILE" placeholder:"FILE" help:"File with the private key: base64 of the 32-byte seed."`
	Program string `name:"signer" env:"APS_SIGNER" placeholder:"CMD" help:"Program that holds the key."`
}

// keyVariable contains the private key itself. It has no flag, because every user can read command lines.
const keyVariable = "APS_KEY"

// OpenSigner returns the signer, and a function that ends its program. It reads the private key from the file or, if no flag
// names one, from APS_KEY, or starts the program that holds it.
func (f Signer) OpenSigner() (signer *client.Signer, closeSigner func(), err error) {
	who, err := f.FullIdentity()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case f.Program != "" && f.KeyFile != "":
		return nil, nil, errors.New("two keys: set either --key-file or --signer")
	case f.Program != "":
		return startSigner(who, strings.Fields(f.Program))
	}
	seed, err := f.readSeed()
	if err != nil {
		return nil, nil, err
	}
	signer, err = client.NewSigner(who, seed)
	return signer, func() {}, err
}

func (f Signer) readSeed() ([]byte, error) {
	if f.KeyFile != "" {
		return ReadSeed("--key-file", f.KeyFile)
	}
	text := os.Getenv(keyVariable)
	if text == "" {
		return nil, errors.New("no private key: set --key-file (APS_KEY_FILE), APS_KEY, or --signer (APS_SIGNER)")
	}
	seed, err := edkey.ParseSeed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a private key, base64 of the 32-byte seed: %w", keyVariable, err)
	}
	return seed, nil
}

func startSigner(who client.Identity, program []string) (*client.Signer, func(), error) {
	holder, err := signer.Start(signer.Options{Args: program, Key: who.Key, Stderr: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	closeSigner := func() { _ = holder.Close() } // it never returns an error
	signer, err := client.NewKeySigner(who, holder)
	if err != nil {
		closeSigner()
		return nil, nil, err
	}
	return signer, closeSigner, nil
}

// CheckHidden returns an error if an ingest key was given as a flag. Commands that start other programs call it, because
// every program can read the command line of every other.
func CheckHidden(token string) error {
	if token != "" && token != os.Getenv("APS_TOKEN") {
		return errors.New("--token is not accepted here, because the started programs could read it: set APS_TOKEN")
	}
	return nil
}

// maxKeyFile is the maximum size of a key file in bytes.
const maxKeyFile = 4 << 10

// ReadSeed reads the base64 of a 32-byte seed from the file that a flag names.
func ReadSeed(flag, file string) ([]byte, error) {
	seed, err := readSeed(file)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a file with a private key, base64 of the 32-byte seed: %w", flag, err)
	}
	return seed, nil
}

func readSeed(file string) ([]byte, error) {
	f, err := secret.OpenSettings(file) // whoever can write the file decides which key signs
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	seed, err := edkey.ParseSeed(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return seed, nil
}
