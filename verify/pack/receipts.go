package pack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/packacts"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/verify"
)

// MaxWrongReceipts is the number of wrong receipts that a report describes.
const MaxWrongReceipts = 10

// Receipts counts acts by the receipts of tools that their results have. Nobody but the holder of a tool's key can make one.
type Receipts struct {
	Confirmed uint64 `json:"confirmed"` // acts with a receipt for exactly this act, signed by a given key
	Failed    uint64 `json:"failed"`    // those of them that the tool answered with an error status
	// WithoutGrant counts the confirmed acts whose tool checked no grant.
	WithoutGrant uint64 `json:"without_grant"`
	// Claimed counts the done or failed acts that are not confirmed: the agent says so.
	Claimed   uint64          `json:"claimed"`
	Unchecked uint64          `json:"unchecked"` // acts with a receipt that no given key signed, or whose intent has no envelope in the pack
	Wrong     uint64          `json:"wrong"`     // acts with a receipt that is not for this act, or not signed by the key that it names
	Tools     []ConfirmedTool `json:"tools"`     // in the order of the given keys
	// Errors describe the first MaxWrongReceipts wrong receipts.
	Errors []string `json:"errors"`

	given bool // keys were given
}

// ConfirmedTool is the number of acts that a tool confirms.
type ConfirmedTool struct {
	Name      string `json:"name"` // of the key
	Confirmed uint64 `json:"confirmed"`
}

// receiptVerdict is the verdict on the receipt of a tool in the result of an act.
type receiptVerdict struct {
	result id.Index
	action id.Hash // of the act, once its intent was read; zero if it has no envelope
	by     verify.Confirmation
	err    error // nil if by confirms the act
}

// addReceipt remembers a shown event if it is the first result of an act that has the receipt of a tool.
func (c *checker) addReceipt(at id.Index, r *event.Record, e *event.Envelope) {
	if e == nil || r.Policy.Intent == "" || verify.FindToolReceipt(e) == "" {
		return
	}
	if c.receipts == nil {
		c.receipts = make(map[id.Event]*receiptVerdict)
	}
	intent := id.Event(strings.Clone(string(r.Policy.Intent)))
	if c.receipts[intent] == nil {
		c.receipts[intent] = &receiptVerdict{result: at, err: verify.ErrUnknownTool}
	}
}

// checkReceipts checks the receipts of tools. A wrong one is no fault of the pack, because an agent can write what it wants.
func (c *checker) checkReceipts() error {
	if c.receipts == nil || len(c.options.ToolKeys) == 0 {
		return nil
	}
	used := make(map[id.Hash]bool) // texts of the receipts
	for shown, err := range c.shownAgain() {
		if err != nil {
			return err
		}
		r, e := &shown.record, shown.envelope
		if v := c.receipts[r.EventID]; v != nil && e != nil && r.Policy.Intent == "" {
			v.action = grant.ActionOf(e).WithoutSubject().Digest()
		}
		v := c.receipts[r.Policy.Intent]
		if v == nil || v.result != shown.at {
			continue
		}
		if v.by, v.err = verify.ConfirmAct(e, r.Policy.Intent, v.action, c.options.ToolKeys); v.err != nil {
			continue
		}
		text, _, _ := strings.Cut(verify.FindToolReceipt(e), "\n\n")
		digest := id.Hash(sha256.Sum256([]byte(text)))
		if used[digest] {
			v.err = fmt.Errorf("the receipt is for another act, which has it too: %w", verify.ErrMismatch)
		}
		used[digest] = true
	}
	return nil
}

// receiptOf returns the verdict on the receipt of an act, or nil if its result has none.
func (c *checker) receiptOf(line *packacts.Line) *receiptVerdict {
	if v := c.receipts[line.Record.EventID]; v != nil && line.HasResult && v.result == line.Result {
		return v
	}
	return nil
}

// newReceipts returns the empty counts of the given keys.
func (c *checker) newReceipts() *Receipts {
	r := &Receipts{Tools: []ConfirmedTool{}, Errors: []string{}, given: len(c.options.ToolKeys) > 0}
	for _, k := range c.options.ToolKeys {
		if r.tool(k.Name()) == nil {
			r.Tools = append(r.Tools, ConfirmedTool{Name: k.Name()})
		}
	}
	return r
}

func (r *Receipts) tool(name string) *ConfirmedTool {
	for i := range r.Tools {
		if r.Tools[i].Name == name {
			return &r.Tools[i]
		}
	}
	return nil
}

// add counts an act. v is nil if its result has no receipt.
func (r *Receipts) add(line *packacts.Line, v *receiptVerdict) {
	if v != nil && v.err == nil {
		r.Confirmed++
		if v.by.Failed() {
			r.Failed++
		}
		if v.by.Approval == "" {
			r.WithoutGrant++
		}
		r.tool(v.by.By).Confirmed++
		return
	}
	if line.Outcome == packacts.Done || line.Outcome == packacts.Failed {
		r.Claimed++
	}
	switch {
	case v == nil:
	case errors.Is(v.err, verify.ErrUnknownTool) || errors.Is(v.err, verify.ErrUnknownAct):
		r.Unchecked++
	default:
		if r.Wrong++; len(r.Errors) < MaxWrongReceipts {
			r.Errors = append(r.Errors, fmt.Sprintf("act %d: %v", line.Index, v.err))
		}
	}
}

// lines returns the printed lines, which are the same in every verifier. There are none if no act has a receipt and no key was given.
func (r *Receipts) lines() []string {
	switch {
	case r == nil || !r.given && r.Unchecked == 0:
		return nil
	case !r.given:
		return []string{"receipts    " + textcheck.Count(r.Unchecked, "act has", "acts have") + " the receipt of a tool, unchecked: no tool's key is given"}
	}
	line := "receipts    " + textcheck.Count(r.Confirmed, "act") + " confirmed"
	var by []string
	for _, t := range r.Tools {
		if t.Confirmed > 0 {
			by = append(by, fmt.Sprintf("%d by %s", t.Confirmed, textcheck.Printable(t.Name)))
		}
	}
	if len(by) > 0 {
		line += ": " + strings.Join(by, ", ")
	}
	if r.WithoutGrant > 0 {
		line += fmt.Sprintf("; %d of them without a grant", r.WithoutGrant)
	}
	if r.Failed > 0 {
		line += fmt.Sprintf("; %d of them failed at the tool", r.Failed)
	}
	line += fmt.Sprintf("; %d only claimed by the agent", r.Claimed)
	if r.Unchecked > 0 {
		line += fmt.Sprintf("; %d with a receipt that can't be checked", r.Unchecked)
	}
	if r.Wrong > 0 {
		line += fmt.Sprintf("; %d with a wrong receipt", r.Wrong)
	}
	return []string{line}
}
