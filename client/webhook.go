package client

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/edkey"
)

// WebhookTolerance is the maximum difference between a webhook's timestamp and the current time.
const WebhookTolerance = 5 * time.Minute

// ErrWebhook is wrapped by errors about webhooks that the service did not send.
var ErrWebhook = errors.New("not a webhook of this service")

// CheckWebhook checks a webhook with these headers and body (https://www.standardwebhooks.com, v1a)
// under the organization's key, whpk_ followed by base64, as shown in the console. It returns the
// webhook-id. The same message may arrive more than once, for example after a lost answer or as a
// replay by an attacker. A receiver that acts on webhooks MUST remember the IDs of the last ten
// minutes. A webhook is a hint: use GetApproval for the state of the approval. Errors wrap
// ErrWebhook, except for a malformed key.
func CheckWebhook(key string, header http.Header, body []byte, now time.Time) (id string, err error) {
	public, err := webhookKey(key)
	if err != nil {
		return "", err
	}
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return "", fmt.Errorf("check webhook: headers: %w", ErrWebhook)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > WebhookTolerance {
		return "", fmt.Errorf("check webhook: timestamp too far from now: %w", ErrWebhook)
	}
	message := fmt.Appendf(nil, "%s.%s.%s", id, timestamp, body)
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		value, ok := strings.CutPrefix(signature, "v1a,")
		raw, err := base64.StdEncoding.Strict().DecodeString(value)
		if ok && err == nil && public.Verify(message, raw) {
			return id, nil
		}
	}
	return "", fmt.Errorf("check webhook: signature: %w", ErrWebhook)
}

func webhookKey(key string) (edkey.Public, error) {
	text, ok := strings.CutPrefix(key, "whpk_")
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil {
		return edkey.Public{}, errors.New("webhook key: must be whpk_ and base64 of 32 bytes")
	}
	public, err := edkey.ParsePublic(raw)
	if err != nil {
		return edkey.Public{}, fmt.Errorf("webhook key: %w", err)
	}
	return public, nil
}
