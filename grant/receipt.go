package grant

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// ReceiptHeader is the first line of a receipt.
const ReceiptHeader = "agentledger/receipt/v1"

// none takes the place of the approval in a receipt without one.
const none = "-"

// Receipt is a tool's statement that it was asked to perform an action and how it answered: a C2SP
// signed note under the tool's own key, whose name is the tool's, such as did:web:payments.example.
// Only the holder of that key can make it, so it is more than what the agent says about itself.
//
// With an approval, the tool has checked its grant. Without one it has checked none: organization,
// agent and intent are what the request stated.
//
// The text has nine lines:
//
//	agentledger/receipt/v1
//	<organization_id>
//	<agent_id>
//	<tool_name>
//	<action_digest, hex>
//	<approval_id, or ->
//	<nonce of the grant, 32 hex digits; without an approval the event_id of the intent>
//	<HTTP status of the answer, 200 to 599>
//	<time of the answer, YYYY-MM-DDThh:mm:ss.sssZ>
type Receipt struct {
	Organization id.Organization
	Agent        id.Agent
	Tool         id.Tool
	ActionDigest id.Hash  // of Action.WithoutSubject
	Approval     string   // approval_id, or "" if the tool checked no grant
	Nonce        Nonce    // of the grant; zero without an approval
	Intent       id.Event // without an approval the event that announced the action; otherwise ""
	Status       int      // HTTP status, 200 to 599
	At           id.Instant
}

// Text returns the signed text.
func (r Receipt) Text() string {
	approval, by := none, string(r.Intent)
	if r.Approval != "" {
		approval, by = r.Approval, hex.EncodeToString(r.Nonce[:])
	}
	return strings.Join([]string{
		ReceiptHeader, r.Organization.String(), string(r.Agent), string(r.Tool), r.ActionDigest.String(),
		approval, by, strconv.Itoa(r.Status), r.At.String(),
	}, "\n") + "\n"
}

// SignReceipt returns the signed note of a receipt. The error wraps ErrMalformed if OpenReceipt would
// reject the receipt.
func SignReceipt(r Receipt, key tlog.SignerKey) ([]byte, error) {
	if _, err := parseReceiptText(r.Text()); err != nil {
		return nil, fmt.Errorf("sign receipt: %w", err)
	}
	n, err := key.SignNote(r.Text())
	if err != nil {
		return nil, fmt.Errorf("sign receipt: %w", err)
	}
	return n.Bytes(), nil
}

// OpenReceipt parses a receipt that key signed. Errors wrap ErrMalformed, tlog.ErrMalformed or
// tlog.ErrSignature.
func OpenReceipt(note []byte, key tlog.VerifierKey) (Receipt, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return Receipt{}, fmt.Errorf("open receipt: %w", err)
	}
	if err := n.Verify(key); err != nil {
		return Receipt{}, fmt.Errorf("open receipt: %w", err)
	}
	r, err := ParseReceipt(n)
	if err != nil {
		return Receipt{}, fmt.Errorf("open receipt: %w", err)
	}
	return r, nil
}

// ParseReceipt parses a receipt without its signatures, so anybody may have written it. Errors wrap ErrMalformed.
func ParseReceipt(n tlog.Note) (Receipt, error) { return parseReceiptText(n.Text) }

// parseReceiptText parses exactly the form that Text writes.
func parseReceiptText(text string) (Receipt, error) {
	var r Receipt
	if flaw := r.read(text); flaw != "" {
		return Receipt{}, fmt.Errorf("parse receipt: %s: %w", flaw, ErrMalformed)
	}
	return r, nil
}

// read parses a text into r, and returns the part that is malformed, or "".
func (r *Receipt) read(text string) (flaw string) {
	lines := strings.Split(text, "\n")
	if len(lines) != 10 || lines[9] != "" || lines[0] != ReceiptHeader {
		return "lines"
	}
	r.Agent, r.Tool, r.Approval, r.Intent = id.Agent(lines[2]), id.Tool(lines[3]), lines[5], id.Event(lines[6])
	var err error
	if r.Organization, err = id.ParseOrganization(lines[1]); err != nil || !event.ValidAgent(lines[2]) || !event.ValidTool(lines[3]) {
		return "names"
	}
	if r.ActionDigest, err = id.ParseHash(lines[4]); err != nil {
		return "digest"
	}
	if r.Approval == none {
		if r.Approval = ""; !event.ValidEvent(lines[6]) {
			return "intent"
		}
	} else {
		r.Intent = ""
		if !readNonce(&r.Nonce, lines[6]) || !isValidApprovalID(r.Approval) {
			return "grant"
		}
	}
	if r.Status, err = strconv.Atoi(lines[7]); err != nil || r.Status < 200 || r.Status > 599 {
		return "status"
	}
	if r.At, err = id.ParseInstant(lines[8]); err != nil {
		return "time"
	}
	if r.Text() != text { // for example upper-case hex
		return "spelling"
	}
	return ""
}
