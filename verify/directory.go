package verify

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
)

// Listing is the payload of a directory's event.
type Listing struct {
	Checkpoints []Listed `json:"checkpoints"` // 1 to MaxListed, ascending by origin
}

// Listed is the latest tree that a log has shown, and the key that signs it.
type Listed struct {
	Origin id.Origin `json:"origin"`
	Size   id.Index  `json:"tree_size"` // not 0
	Root   id.Hash   `json:"root_hash"`
	LogKey string    `json:"log_key"` // vkey
}

// listedLine is a Listed whose members may be missing.
type listedLine struct {
	Origin *id.Origin `json:"origin"`
	Size   *id.Index  `json:"tree_size"`
	Root   *id.Hash   `json:"root_hash"`
	LogKey *string    `json:"log_key"`
}

// ParseListing parses the payload of an event in a service's directory. It rejects unknown members.
// Errors wrap ErrMismatch or ErrMalformed.
func ParseListing(e *event.Envelope) (Listing, error) {
	var l Listing
	if e.ActionKind != DirectoryKind {
		return l, fmt.Errorf("listing: not an event of a directory: %w", ErrMismatch)
	}
	var payload struct {
		Checkpoints []listedLine `json:"checkpoints"`
	}
	if err := json.Unmarshal(e.Payload, &payload, json.RejectUnknownMembers(true)); err != nil {
		return l, fmt.Errorf("listing: %w: %w", ErrMalformed, err)
	}
	for _, line := range payload.Checkpoints {
		if line.Origin == nil || line.Size == nil || line.Root == nil || line.LogKey == nil {
			return l, fmt.Errorf("listing: missing member: %w", ErrMalformed)
		}
		l.Checkpoints = append(l.Checkpoints,
			Listed{Origin: *line.Origin, Size: *line.Size, Root: *line.Root, LogKey: *line.LogKey})
	}
	if len(l.Checkpoints) == 0 || len(l.Checkpoints) > MaxListed {
		return l, fmt.Errorf("listing: number of logs: %w", ErrMalformed)
	}
	last := id.Origin("")
	for _, c := range l.Checkpoints {
		key, err := tlog.ParseVerifierKey(c.LogKey)
		if err != nil || key.Name() != string(c.Origin) || c.Origin <= last || c.Size == 0 || c.Size > event.MaxSeq {
			return l, fmt.Errorf("listing: a log's origin, tree_size or log_key: %w", ErrMalformed)
		}
		last = c.Origin
	}
	return l, nil
}

// Disclosed returns how much of an event is shown under a setting. The service's own events contain
// names of users and rules, so they are never shown in full. Exceptions are events of a directory,
// the first event of a successor and changes of a log key, because readers need the payload to
// check them and every log shows this content anyway.
func Disclosed(setting id.Disclosure, signer event.Signer, kind string) id.Disclosure {
	switch {
	case signer != event.SignerSystem:
		return setting
	case kind == DirectoryKind, kind == SuccessorKind, kind == LogKeyKind:
		return id.DiscloseFull
	}
	return min(setting, id.DiscloseRecord)
}

// Directory is a second proof of an event: its inclusion in a tree of its log that the service's
// directory listed, and the event of the directory that lists the tree.
type Directory struct {
	Inclusion Inclusion `json:"inclusion"` // of the bundle's event, in the listed tree
	Bundle    *Bundle   `json:"bundle"`    // of the directory's event; has no Directory itself
}

// parseDirectory parses the member directory of a bundle.
func parseDirectory(value []byte) (d *Directory, err error) {
	canonical, members, err := jcs.ParseObject(nil, value, jcs.MaxDepth)
	if err != nil || len(members) != 2 || string(members[0].Name(canonical)) != "bundle" ||
		string(members[1].Name(canonical)) != "inclusion" {
		return nil, fmt.Errorf("directory: members: %w", ErrMalformed)
	}
	d = new(Directory)
	inclusion := canonical[members[1].Value:members[1].End]
	if err := checkInclusionMembers(inclusion); err != nil {
		return nil, fmt.Errorf("directory: inclusion: %w", err)
	}
	if err := json.Unmarshal(inclusion, &d.Inclusion); err != nil {
		return nil, fmt.Errorf("directory: inclusion: %w: %w", ErrMalformed, err)
	}
	if !d.Inclusion.hasValidNumbers() {
		return nil, fmt.Errorf("directory: inclusion: number: %w", ErrMalformed)
	}
	if d.Bundle, err = ParseBundle(bytes.Clone(canonical[members[0].Value:members[0].End])); err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	if d.Bundle.Directory != nil {
		return nil, fmt.Errorf("directory: in a directory: %w", ErrMalformed)
	}
	return d, nil
}

// checkDirectory checks that the directory's event is proven by its own bundle, is one of the
// service's own events and lists a tree of the bundle's log, and that the bundle's event is in that
// tree.
func (c *checker) checkDirectory() error {
	d := c.bundle.Directory
	if d == nil {
		return errUndisclosed
	}
	if d.Bundle == nil || d.Bundle.Directory != nil {
		return fmt.Errorf("bundle: %w", ErrMalformed)
	}
	options := Options{Witnesses: c.options.Witnesses}
	if c.options.Directory != nil {
		options = *c.options.Directory
	}
	options.CheckedAt = c.options.CheckedAt
	inner := &checker{bundle: d.Bundle, options: options}
	r := inner.checkBundle()
	c.directory, c.report.DirectoryCosignatures = inner, r.Cosignatures
	if !r.OK {
		return fmt.Errorf("bundle: %s: %w", r.Errors[0], ErrMismatch)
	}
	if !isTrueVerdict(r.RecordOK) || !isTrueVerdict(r.SignatureOK) || !isTrueVerdict(r.EnvelopeOK) ||
		inner.record.Signer != event.SignerSystem {
		return fmt.Errorf("bundle: not shown in full, or not the service's own: %w", ErrMismatch)
	}
	l, err := ParseListing(inner.envelope)
	if err != nil {
		return err
	}
	for _, listed := range l.Checkpoints {
		if listed.Origin == c.bundle.Origin {
			return checkInclusion(d.Inclusion, c.bundle.LogIndex, c.bundle.EventHash,
				tlog.Checkpoint{Origin: listed.Origin, Size: listed.Size, Root: listed.Root})
		}
	}
	return fmt.Errorf("the log is not listed: %w", ErrMismatch)
}

func isTrueVerdict(verdict *bool) bool { return verdict != nil && *verdict }
