package verify

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Errors of ConfirmAct about receipts that prove nothing, and are no proof of a fault.
var (
	ErrUnknownTool = errors.New("signed by none of the tools' keys that were given")
	ErrUnknownAct  = errors.New("the event of the intent is not known, so the act is not")
)

// Confirmation is what a tool states about an act. The tool's name is that of its key.
type Confirmation struct {
	By       string     `json:"by"`
	Status   int        `json:"status"`               // HTTP status of the tool's answer
	At       id.Instant `json:"at"`                   // by the tool's clock
	Approval string     `json:"approval_id,omitzero"` // whose grant the tool checked; "" if it checked none
}

// Failed reports whether the tool answered with an error.
func (c Confirmation) Failed() bool { return c.Status >= 400 }

// FindToolReceipt returns the receipt of a tool in the event of a result, which is unverified, or "" if there is none. Other texts
// in the member receipt are none: agents may record what they want.
func FindToolReceipt(result *event.Envelope) (note string) {
	if !bytes.Contains(result.Payload, []byte(`"receipt":"`+grant.ReceiptHeader+`\n`)) { // canonical, so this is the only spelling
		return ""
	}
	var payload struct {
		Receipt any `json:"receipt"`
	}
	if json.Unmarshal(result.Payload, &payload) != nil {
		return ""
	}
	if note, _ = payload.Receipt.(string); !strings.HasPrefix(note, grant.ReceiptHeader+"\n") {
		return ""
	}
	return note
}

// ConfirmAct checks the receipt of a tool in the event of a result: one of the keys, which the caller pinned, signed it for exactly
// the act that the event is the result of. intent is the intent that the record of the result names, or "". action is the digest of
// that act, by its intent (grant.Action.WithoutSubject). If one of them is zero, the error is ErrUnknownAct
// if everything else fits. The caller must have verified both events. Errors wrap ErrUnknownTool, ErrUnknownAct, ErrMismatch, ErrMalformed,
// grant.ErrMalformed, tlog.ErrMalformed or tlog.ErrSignature. The confirmation is zero if no key has signed.
func ConfirmAct(result *event.Envelope, intent id.Event, action id.Hash, keys []tlog.VerifierKey) (Confirmation, error) {
	note := FindToolReceipt(result)
	key, err := findToolKey([]byte(note), keys)
	if err != nil {
		return Confirmation{}, err
	}
	r, err := grant.OpenReceipt([]byte(note), key)
	if err != nil {
		return Confirmation{}, err
	}
	var payload struct {
		Approval any `json:"approval_id"`
		Nonce    any `json:"grant_nonce"`
	}
	if err := json.Unmarshal(result.Payload, &payload); err != nil {
		return Confirmation{}, fmt.Errorf("payload: %w", ErrMalformed)
	}
	var approval, nonce any
	if r.Approval != "" {
		approval, nonce = r.Approval, hex.EncodeToString(r.Nonce[:])
	}
	c := Confirmation{By: key.Name(), Status: r.Status, At: r.At, Approval: r.Approval}
	other := ""
	switch {
	case r.Organization != result.OrganizationID:
		other = "organization"
	case r.Agent != result.AgentID:
		other = "agent"
	case r.Tool != result.Tool:
		other = "tool"
	case payload.Approval != approval || payload.Nonce != nonce:
		other = "approval"
	case intent == "":
		return c, ErrUnknownAct
	case r.Approval == "" && r.Intent != intent:
		other = "intent"
	case action == id.Hash{}:
		return c, ErrUnknownAct
	case r.ActionDigest != action:
		other = "act"
	default:
		return c, nil
	}
	return c, fmt.Errorf("the receipt is for another %s: %w", other, ErrMismatch)
}

// findToolKey returns the key that a receipt names as its signer.
func findToolKey(note []byte, keys []tlog.VerifierKey) (tlog.VerifierKey, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return tlog.VerifierKey{}, fmt.Errorf("parse receipt: %w", err)
	}
	for _, k := range keys {
		for _, s := range n.Signatures {
			if s.Name == k.Name() && s.KeyHash == k.Hash() {
				return k, nil
			}
		}
	}
	return tlog.VerifierKey{}, ErrUnknownTool
}
