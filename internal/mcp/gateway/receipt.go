package gateway

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Members of _meta between the gateway and a server that checks grants and signs receipts.
const (
	metaGrant   = "agentledger/grant"   // of an approved call: the grant, a signed note
	metaIntent  = "agentledger/intent"  // in place of the grant: organization, agent and event of the intent. See guard.Permit
	metaPayload = "agentledger/payload" // of the grant or the intent
	metaReceipt = "agentledger/receipt" // of a result: what the tool did, a signed note. See grant.Receipt
)

// maxReceipt is the maximum size of a receipt in bytes, as in the header that guards read. A longer one is left out.
const maxReceipt = 3072

// addPermit adds the grant of an approved call, or the intent that asks for a receipt, to a request for the server.
func addPermit(m *message.Message, p guard.Permit) error {
	name, note, payload := metaGrant, p.Grant, p.Approved
	if note == "" {
		name, note, payload = metaIntent, p.Intent, p.Payload
	}
	if note == "" {
		return nil
	}
	meta := m.Meta()
	if meta == nil {
		meta = map[string]jsontext.Value{}
	}
	meta[name], meta[metaPayload] = jcs.AppendString(nil, note), jcs.AppendString(nil, payload)
	value, err := message.EncodeMembers(meta)
	if err != nil {
		return err
	}
	params, err := message.ReplaceMember(m.Params, "_meta", value)
	if err != nil {
		return err
	}
	m.Params = params
	return nil
}

// receiptIn returns the receipt of a tool in a result, or "". The gateway does not check it: whoever knows the tool's key can.
func receiptIn(result jsontext.Value) string {
	var members struct {
		Meta map[string]jsontext.Value `json:"_meta"`
	}
	var note string
	if result == nil || json.Unmarshal(result, &members) != nil || json.Unmarshal(members.Meta[metaReceipt], &note) != nil ||
		len(note) > maxReceipt || !strings.HasPrefix(note, grant.ReceiptHeader+"\n") {
		return ""
	}
	return note
}
