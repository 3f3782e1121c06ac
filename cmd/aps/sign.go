package main

import (
	"errors"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/jcs"
)

type signCommand struct {
	File string `arg:"" optional:"" default:"-" help:"File with unsigned events, - for standard input." type:"input" expected:"a file with unsigned events, or - for standard input"`
	Form string `enum:"digest,canonical" default:"digest" help:"What is signed: ${enum}."`
	flags.Signer
}

func (c *signCommand) Run(s *streams) error {
	signer, closeSigner, err := c.OpenSigner()
	if err != nil {
		return err
	}
	defer closeSigner()
	form, err := event.ParseForm(c.Form)
	if err != nil {
		return err
	}
	in, err := s.openInput(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	count := 0
	for value, err := range readValues(in) {
		if err != nil {
			return err
		}
		envelope, err := completeAndSign(signer, value, form)
		if err != nil {
			return err
		}
		if err := s.printLine("%s", envelope); err != nil {
			return err
		}
		count++
	}
	if count == 0 {
		return errors.New("no event to sign")
	}
	return nil
}

func completeAndSign(signer *client.Signer, unsigned []byte, form event.Form) ([]byte, error) {
	complete, err := signer.Complete(unsigned)
	if err != nil {
		return nil, err
	}
	return signer.Sign(complete, form)
}

// hasSignature reports whether an event has a signature member.
func hasSignature(value []byte) bool {
	canonical, members, err := jcs.ParseObject(nil, value, jcs.MaxDepth)
	if err != nil {
		return false
	}
	for _, m := range members {
		if name := string(m.Name(canonical)); name == "sig_alg" || name == "sig_value_b64" {
			return true
		}
	}
	return false
}
