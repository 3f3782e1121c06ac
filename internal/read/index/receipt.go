package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Receipt is what the receipt of a tool in the result of an act shows. It is decided when the result is joined to the act, under the keys of
// the latest change of keys before the result. So it is a function of the log, and a later change of keys does not alter it.
type Receipt byte

// The receipts. The numbers are stored.
const (
	NoReceipt Receipt = iota
	// Unchecked receipts show nothing: no key in force signed them, the envelope of the act is erased, or only one of act and receipt has an
	// approval.
	Unchecked
	Confirmed // the tool confirms this act
	Wrong     // it is malformed, or it names a key in force and is not one of this act
)

var receipts = [...]string{"", "unchecked", "confirmed", "wrong"}

func (r Receipt) String() string { return receipts[r] }

// receiptBegin is in each payload that has the receipt of a tool.
var receiptBegin = []byte(`"receipt":"` + grant.ReceiptHeader + `\n`)

// readReceipt returns the payload of a result if it has the receipt of a tool, and otherwise nil.
func readReceipt(payload []byte) []byte {
	if !bytes.Contains(payload, receiptBegin) {
		return nil
	}
	return bytes.Clone(payload)
}

// toolKeys are the keys of tools that are in force after an event.
type toolKeys []tlog.VerifierKey

// parseToolKeys parses the keys of a statement or of a record, as the service wrote them. Others are left out.
func parseToolKeys(texts []string) toolKeys {
	keys := make(toolKeys, 0, len(texts))
	for _, text := range texts {
		if k, err := tlog.ParseVerifierKey(text); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// readToolKeys returns the keys that a statement puts in force.
func readToolKeys(envelope []byte) toolKeys {
	var payload struct {
		Keys []string `json:"keys"`
	}
	if err := json.Unmarshal(memberOf(envelope, "payload"), &payload); err != nil {
		return toolKeys{}
	}
	return parseToolKeys(payload.Keys)
}

// findToolKeys returns the keys in force after the indexed events of a view.
func (x *Index) findToolKeys(ctx context.Context, s *log.State, v *view) (toolKeys, error) {
	changes := Filter{Kind: string(sysevent.ToolKeysChanged), Signer: event.SignerSystem}
	for row, err := range x.rows(ctx, s, v, changes.wanted(), []span{{0, v.position}}, false) {
		if err != nil {
			return nil, err
		}
		e, err := x.ledgers.Event(ctx, s, row.Index, storage.FieldEnvelope)
		if err != nil {
			return nil, fmt.Errorf("read keys of tools: %w", err)
		}
		return readToolKeys(e.Envelope), nil
	}
	if x.inheritedToolKeys == nil {
		return toolKeys{}, nil
	}
	texts, err := x.inheritedToolKeys(ctx, s)
	return parseToolKeys(texts), err
}

// prepareReceipts finds what the receipts of parts are checked against: the keys in force before the first of them, and the digests of the
// acts. It reads nothing if no part has a receipt.
func (j *joiner) prepareReceipts(ctx context.Context, parts []part) error {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.receipt != nil }) {
		return nil
	}
	if j.keys == nil {
		var err error
		if j.keys, err = j.index.findToolKeys(ctx, j.state, j.view); err != nil {
			return err
		}
	}
	if len(j.keys) == 0 && !slices.ContainsFunc(parts, func(p part) bool { return len(p.toolKeys) > 0 }) {
		return nil
	}
	var of []candidate
	for i := range parts {
		if at, known := j.events[parts[i].intent]; known && parts[i].receipt != nil {
			of = append(of, candidate{at: at})
		}
	}
	j.actions = make(map[id.Index]id.Hash, len(of))
	return j.index.readInParts(ctx, j.state, of, func(_ int, e *storage.Event) error {
		if e.Envelope != nil {
			j.actions[e.Index] = grant.Action{Organization: j.state.Identity().Organization, Agent: e.Agent, Tool: e.Tool,
				Payload: memberOf(e.Envelope, "payload")}.Digest()
		}
		return nil
	})
}

// takeReceipt gives an act what the receipt in its result shows.
func (j *joiner) takeReceipt(a *act, r *Row, p *part) {
	a.receipt, a.tool = NoReceipt, ""
	if p.receipt == nil {
		return
	}
	if a.receipt = Unchecked; a.erased || len(j.keys) == 0 {
		return
	}
	result := &event.Envelope{OrganizationID: j.state.Identity().Organization, AgentID: r.Agent, Tool: r.Tool, Payload: p.receipt}
	by, err := verify.ConfirmAct(result, p.intent, j.actions[a.at], j.keys)
	if err != nil {
		if !errors.Is(err, verify.ErrUnknownTool) && !errors.Is(err, verify.ErrUnknownAct) {
			a.receipt = Wrong
		}
		return
	}
	switch {
	case by.Approval == a.approval: // without an approval the receipt names the intent
		a.receipt, a.tool = Confirmed, intern(by.By)
	case by.Approval != "" && a.approval != "":
		a.receipt = Wrong
	}
}

// forgetReceipt takes a verdict back that needs an erased envelope.
func (a *act) forgetReceipt(to Receipt) {
	if a.receipt != NoReceipt {
		a.receipt, a.tool = to, ""
	}
}
