package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// receiptReport is the JSON output of verify for a COSE receipt. It has one verdict, because only the path and the
// signature together show anything.
type receiptReport struct {
	OK          bool      `json:"ok"`
	Origin      id.Origin `json:"origin"`
	LogIndex    id.Index  `json:"log_index"`
	TreeSize    id.Index  `json:"tree_size"`
	RootHash    *id.Hash  `json:"root_hash"` // of the tree that the log signed, or null
	Errors      []string  `json:"errors"`
	UnknownKeys []string  `json:"unknown_keys,omitzero"` // set if they are the only fault
}

var errReceiptQuorum = errors.New("can't tell: a COSE receipt has no cosignatures of witnesses, which the policy requires; a tlog-proof has them")

// checkReceipt checks a COSE receipt, which contains neither key nor entry.
func (c *verifyCommand) checkReceipt(s *streams, b []byte, trusted auditorTrust) error {
	if c.Require != "commitment" {
		return fmt.Errorf("can't tell: a COSE receipt does not show the %s; a bundle does", c.Require)
	}
	if len(trusted.keys) == 0 || c.Entry == "" {
		return errors.New("a COSE receipt holds neither the key nor the entry: set --key or --policy, and --entry")
	}
	entry, err := c.readEntry(s)
	if err != nil {
		return fmt.Errorf("--entry: %w", err)
	}
	receipt, err := tlog.ParseReceipt(b)
	if err != nil { // there are receipts of other profiles
		return fmt.Errorf("can't tell: not a COSE receipt of this service: %w", err)
	}
	r := newReceiptReport(receipt, entry, trusted)
	if err := printReceipt(s, r); err != nil {
		return err
	}
	switch {
	case len(r.UnknownKeys) > 0:
		return unknownKeysError(r.UnknownKeys, "")
	case !r.OK:
		return &negative{fmt.Errorf("not proved: %s", textcheck.Printable(r.Errors[0]))}
	case trusted.policy != nil && !trusted.policy.Reached(nil):
		return errReceiptQuorum
	}
	return nil
}

// newReceiptReport checks a receipt under the trusted key that it names, and that the entry names its own index.
func newReceiptReport(receipt tlog.Receipt, entry []byte, trusted auditorTrust) receiptReport {
	r := receiptReport{Origin: receipt.Origin, LogIndex: receipt.Index, TreeSize: receipt.Size, Errors: []string{}}
	fail := func(err error) receiptReport {
		r.Errors = append(r.Errors, err.Error())
		return r
	}
	parsed, err := event.ParseEntry(entry)
	if err != nil {
		return fail(err)
	}
	if parsed.Seq != receipt.Index.Sequence() {
		return fail(fmt.Errorf("entry and index: %w", verify.ErrMismatch))
	}
	key, err := trusted.keyOfReceipt(receipt)
	if err != nil {
		r.UnknownKeys = []string{verify.Signer(string(receipt.Origin), receipt.KeyHash)}
		return fail(err)
	}
	c, err := receipt.Check(parsed.Hash(), key)
	if err != nil {
		return fail(err)
	}
	r.OK, r.RootHash = true, &c.Root
	return r
}

// keyOfReceipt returns the trusted key that a receipt names.
func (t auditorTrust) keyOfReceipt(r tlog.Receipt) (tlog.VerifierKey, error) {
	keys := t.keys
	for _, k := range t.others {
		if k.Signed(r.Size) {
			keys = append(keys[:len(keys):len(keys)], k.Key)
		}
	}
	for _, k := range keys {
		if k.Name() == string(r.Origin) && k.Hash() == r.KeyHash {
			return k, nil
		}
	}
	return tlog.VerifierKey{}, fmt.Errorf("the key of the receipt: %w", tlog.ErrSignature)
}

// printReceipt prints the report of a COSE receipt.
func printReceipt(s *streams, r receiptReport) error {
	if s.json {
		return s.printJSON(r)
	}
	lines := []string{
		"log         " + textcheck.Printable(string(r.Origin)),
		verdictLine(&r.OK, "receipt", "the path leads from the entry to a root that is signed by the key given"),
	}
	if r.OK {
		lines = append(lines, fmt.Sprintf("proved: entry %d in a tree of %d entries. "+
			"A COSE receipt does not show the chain, the event and cosignatures; a bundle does",
			r.LogIndex, r.TreeSize))
	}
	return s.printLine("%s", strings.Join(softenFailures(lines, r.UnknownKeys), "\n"))
}
