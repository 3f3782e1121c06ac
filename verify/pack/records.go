package pack

import (
	"fmt"
	"iter"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// maxKeys is the maximum number of parsed public keys that a check caches, about 200 bytes each.
const maxKeys = MaxAgents

// checkRecords checks the shown events, reading records and envelopes in parallel.
func (c *checker) checkRecords() error {
	next, stop := iter.Pull2(c.files.lines(FileEnvelopes))
	defer stop()
	from := c.manifest.Begin
	for line, err := range c.files.lines(FileRecords) {
		if err != nil {
			return err
		}
		d, at, err := c.checkLogged(line)
		if err == nil && at < from {
			err = fmt.Errorf("order: %w", verify.ErrMismatch)
		}
		if err == nil {
			err = c.checkShown(&d, at, next)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.found.Records+1, err)
		}
		c.found.Records++
		from = at + 1
	}
	if _, err, more := next(); more {
		return fmt.Errorf("an envelope without an event that has one: %w", orMismatch(err))
	}
	if m := &c.manifest; !m.Request.Filters() && c.found.Records != uint64(m.End-m.Begin) {
		return fmt.Errorf("events that are not shown, without a filter: %w", verify.ErrMismatch)
	}
	return c.checkUsed()
}

func orMismatch(err error) error {
	if err == nil {
		return verify.ErrMismatch
	}
	return err
}

// checkShown checks one shown event. next returns the next line of envelopes.
func (c *checker) checkShown(d *verify.Documents, at id.Index, next func() ([]byte, error, bool)) error {
	r, wanted := &d.Record, &c.manifest.Request
	if wanted.AgentID != nil && r.AgentID != *wanted.AgentID && !(wanted.Coverage && r.Signer == event.SignerSystem) { // its envelope decides
		return fmt.Errorf("agent_id and the request: %w", verify.ErrMismatch)
	}
	if p := &r.Policy; !event.ValidEvent(string(r.EventID)) || p.Intent != "" && !event.ValidEvent(string(p.Intent)) ||
		p.ApprovalID != "" && !event.ValidEvent(p.ApprovalID) {
		return fmt.Errorf("event_id, intent, approval_id: %w", verify.ErrMalformed)
	}
	erased := c.coverage.covers(at) && r.Signer != event.SignerSystem
	if wanted.Envelopes && !erased {
		line, err, more := next()
		if !more {
			err = fmt.Errorf("no envelope: %w", verify.ErrMismatch)
		}
		if err == nil {
			err = c.checkEnvelope(d, line)
		}
		if err == nil && r.Signer == event.SignerSystem {
			c.showStatement(d.Envelope, at)
			err = c.checkListed(d.Envelope, at)
		}
		if err != nil {
			return err
		}
		c.found.Envelopes++
	}
	if erased {
		c.found.Erased++
	}
	c.coverage.show(at, r.Signer)
	if c.acts != nil {
		c.acts.AddEvent(at, r, d.Envelope)
		c.addReceipt(at, r, d.Envelope)
	}
	if err := c.checkNamed(r); err != nil {
		return err
	}
	if d.SignatureNeedsEnvelope() {
		c.report.SignaturesUnchecked++
		return nil
	}
	return c.checkSignature(d)
}

// checkEnvelope checks that an envelope belongs to the record and matches the request.
func (c *checker) checkEnvelope(d *verify.Documents, text []byte) error {
	if err := parseEnvelope(d, string(text)); err != nil {
		return err
	}
	e, wanted := d.Envelope, &c.manifest.Request
	matches := wanted.Matches(e.AgentID, e.TraceID, e.Tool) && wanted.MatchesSubject(e)
	if !matches && !wanted.Adds(d.Record.Signer, e.ActionKind) {
		return fmt.Errorf("envelope and the request: %w", verify.ErrMismatch)
	}
	return nil
}

// parseEnvelope parses the envelope of a record, which must contain the signature in the record.
func parseEnvelope(d *verify.Documents, text string) error {
	err := d.ParseEnvelope(text)
	if err == nil && d.Envelope.SignatureB64 != d.Record.SigValueB64 {
		err = fmt.Errorf("sig_value_b64 and the record's: %w", verify.ErrMismatch)
	}
	if err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	return nil
}

// checkSignature checks that the record's key signed. Parsed keys are cached.
func (c *checker) checkSignature(d *verify.Documents) error {
	key, known := c.keys[d.Record.PublicKey]
	if !known {
		var err error
		if key, err = d.PublicKey(); err != nil {
			return err
		}
		if len(c.keys) >= maxKeys {
			c.keys = make(map[string]edkey.Public)
		}
		c.keys[d.Record.PublicKey] = key
	}
	if err := d.CheckSignature(key); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// checkNamed checks that the pack contains the agent, the key and the policy that a record names.
func (c *checker) checkNamed(r *event.Record) error {
	if digest := r.Policy.PolicyDigest; digest != (id.Hash{}) {
		if _, there := c.policies[digest]; !there {
			return fmt.Errorf("policy_digest without a document: %w", verify.ErrMismatch)
		}
		c.policies[digest] = true
	}
	if r.Signer == event.SignerSystem {
		return nil
	}
	a := c.agents[r.AgentID]
	if a == nil || r.Signer == event.SignerAgent && a.keys[r.KeyID] != r.PublicKey {
		return fmt.Errorf("agent_id, key_id, public_key and %s: %w", FileAgents, verify.ErrMismatch)
	}
	a.shown = true
	return nil
}

// checkUsed checks that a shown event needs every agent, policy and erasure in the pack.
func (c *checker) checkUsed() error {
	for _, a := range c.agents {
		if !a.shown {
			return fmt.Errorf("an agent without a shown event: %w", verify.ErrMismatch)
		}
	}
	for _, named := range c.policies {
		if !named {
			return fmt.Errorf("a policy that no shown event names: %w", verify.ErrMismatch)
		}
	}
	return c.checkErasuresUsed()
}
