package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// maxProven is the size in bytes of the largest file that verify reads.
const maxProven = 64 << 20

type verifyCommand struct {
	Bundle  string `arg:"" help:"File with a bundle or a tlog-proof, - for standard input; with --url the event id."`
	Key     string `placeholder:"VKEY" help:"The log's verifier key, from a source that you trust. Without it a bundle can be whole, but nothing says whose it is."`
	Retired string `placeholder:"FILE" help:"File with earlier keys of the log, one a line."`
	Entry   string `placeholder:"FILE" help:"The entry that a tlog-proof is for, exactly as it was logged."`
	URL     string `name:"url" placeholder:"URL" help:"Fetch the bundle from this service; otherwise nothing is fetched."`
	Slug    string `placeholder:"NAME" help:"The organization's slug, with --url."`
}

func (c *verifyCommand) Run(ctx context.Context, s *streams) error {
	keys, err := c.keys(s)
	if err != nil {
		return err
	}
	text, err := c.load(ctx, s)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(text, []byte("c2sp.org/tlog-proof@")) {
		return c.checkProof(s, text, keys)
	}
	return c.checkBundle(s, text, keys)
}

// keys reads the keys given; without one the bundle's counts.
func (c *verifyCommand) keys(s *streams) (verify.Options, error) {
	o := verify.Options{CheckedAt: id.InstantOf(time.Now())}
	if c.Key == "" {
		return o, nil
	}
	key, err := tlog.ParseVerifierKey(strings.TrimSpace(c.Key))
	if err != nil {
		return o, fmt.Errorf("--key: %w", err)
	}
	o.Key = &key
	if c.Retired == "" {
		return o, nil
	}
	text, err := s.read(c.Retired, maxProven)
	if err != nil {
		return o, fmt.Errorf("--retired: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		retired, err := tlog.ParseVerifierKey(line)
		if err != nil {
			return o, fmt.Errorf("--retired: %w", err)
		}
		o.Retired = append(o.Retired, retired)
	}
	return o, nil
}

func (c *verifyCommand) load(ctx context.Context, s *streams) ([]byte, error) {
	if c.URL == "" {
		return s.read(c.Bundle, maxProven)
	}
	if c.Slug == "" {
		return nil, errors.New("no organization: set --slug")
	}
	service, err := serviceFlags{URL: c.URL}.client(s.err)
	if err != nil {
		return nil, err
	}
	text, err := service.FetchBundle(ctx, id.Slug(c.Slug), id.Event(c.Bundle))
	if err != nil {
		return nil, &unable{err}
	}
	return text, nil
}

func (c *verifyCommand) checkBundle(s *streams, text []byte, o verify.Options) error {
	bundle, err := verify.ParseBundle(text)
	if err != nil {
		return unreadable(text, err)
	}
	if c.URL != "" && string(bundle.EventID) != c.Bundle {
		return &negative{errors.New("the service sent the bundle of another event")}
	}
	r := verify.Check(bundle, o)
	if s.json {
		err = s.value(r)
	} else {
		err = printReport(s, bundle, r)
	}
	switch {
	case err != nil:
		return err
	case !r.OK:
		return &negative{fmt.Errorf("not proved: %s", plain(r.Errors[0]))}
	case o.Key == nil:
		return errors.New("can't tell whose log this is: no --key was given")
	}
	return nil
}

// unreadable tells a bundle that breaks the rules, which is wrong, from
// something that is none or can't be read yet, of which nothing can be told.
func unreadable(text []byte, err error) error {
	value := jsontext.Value(text)
	isObject := value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) && value.Kind() == '{'
	if errors.Is(err, verify.ErrVersion) || !isObject || !bytes.Contains(text, []byte(`"inclusion"`)) {
		return fmt.Errorf("not a bundle that this program reads: %w", err)
	}
	return &negative{fmt.Errorf("not proved: %w", err)}
}
