// Package signedvote builds and checks the passkey signatures of approvers: the text that a vote or the registration of
// a voter key signs, the WebAuthn assertion over it, and the public key that must have made the assertion.
// docs/spec/signed-votes.md specifies all of it.
//
// The service calls this package before it stores a vote, and verifiers call it on the stored events, so both apply the
// same rules.
//
// Invariants:
//
//   - A check depends on its arguments only: no network, no clock, no state.
//   - Each accepted document has exactly one spelling: base64url re-encodes to the same text, a public key is in its
//     canonical form, and an ECDSA signature is strict DER. (An ECDSA signature (r, s) still has its twin (r, n-s).)
//   - Different votes sign different texts, because no field can contain the separator of lines.
//   - The cost of a check is bounded: client data is at most MaxClientData bytes, and an RSA modulus at most 4,096 bits.
//   - All functions may be called concurrently, and no input makes them panic.
//
// The package is stable in the sense of README, section Stability.
package signedvote

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
)

// The first lines of the signed texts.
const (
	voteVersion = "agentledger/vote/v1"
	keyVersion  = "agentledger/voter-key/v1"
)

// Vote is what an approver signs.
type Vote struct {
	Origin       id.Origin // of the log
	ApprovalID   string
	ActionDigest id.Hash
	Vote         string // approve or deny
	// Reason and ReasonCode are the members of the event's payload, "" if absent.
	Reason, ReasonCode string
}

// Text returns the text of a vote in a time bucket (see Bucket). Its error wraps verify.ErrMalformed.
func (v *Vote) Text(bucket string) ([]byte, error) {
	if v.Vote != "approve" && v.Vote != "deny" {
		return nil, fmt.Errorf("vote: %w", verify.ErrMalformed)
	}
	if !event.ValidEvent(v.ApprovalID) {
		return nil, fmt.Errorf("approval_id: %w", verify.ErrMalformed)
	}
	remark := appendOrNull([]byte(`{"reason":`), v.Reason)
	remark = append(appendOrNull(append(remark, `,"reason_code":`...), v.ReasonCode), '}')
	return lines(bucket, voteVersion, string(v.Origin), v.ApprovalID, v.ActionDigest.String(), v.Vote,
		id.Hash(sha256.Sum256(remark)).String())
}

func appendOrNull(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return jcs.AppendString(b, text)
}

// KeyText returns the text by which an account registers a credential as its voter key. The new credential signs it, and
// so does the voter key that consents, each with a bucket of its own. Its error wraps verify.ErrMalformed.
func KeyText(origin id.Origin, account string, credential Bytes, key Key, bucket string) ([]byte, error) {
	if !event.ValidEvent(account) {
		return nil, fmt.Errorf("account_id: %w", verify.ErrMalformed)
	}
	return lines(bucket, keyVersion, string(origin), account, credential.String(), key.Thumbprint())
}

// lines joins the lines of a text, whose last one is the bucket.
func lines(bucket string, parts ...string) ([]byte, error) {
	if _, ok := parseBucket(bucket); !ok {
		return nil, fmt.Errorf("time: %w", verify.ErrMalformed)
	}
	for _, p := range parts {
		if p == "" || strings.ContainsRune(p, '\n') {
			return nil, fmt.Errorf("line of the signed text: %w", verify.ErrMalformed)
		}
	}
	return []byte(strings.Join(append(parts, bucket), "\n") + "\n"), nil
}

// Challenge returns the WebAuthn challenge for a text.
func Challenge(text []byte) id.Hash { return sha256.Sum256(text) }

// The length of a time bucket, and how long after its start a record may have been received.
const (
	bucketLen  = id.Instant(5 * time.Minute / time.Millisecond)
	bucketOpen = 3 * bucketLen
)

// Bucket returns the time bucket of now: the latest multiple of five minutes, as YYYY-MM-DDThh:mm:00Z.
func Bucket(now id.Instant) string {
	return (now - (now%bucketLen+bucketLen)%bucketLen).Time().Format(time.RFC3339)
}

func parseBucket(bucket string) (start id.Instant, ok bool) {
	seconds, isUTC := strings.CutSuffix(bucket, "Z")
	start, err := id.ParseInstant(seconds + ".000Z")
	return start, isUTC && err == nil && start%bucketLen == 0
}

// Fits reports whether bucket is a time bucket for an event that was received at a time: from five minutes before the
// bucket's start until fifteen minutes after it.
func Fits(bucket string, receivedAt id.Instant) bool {
	start, ok := parseBucket(bucket)
	return ok && start-bucketLen <= receivedAt && receivedAt < start+bucketOpen
}

// Bytes are bytes whose text is base64url without padding.
type Bytes []byte

// String returns the base64url text.
func (b Bytes) String() string { return base64.RawURLEncoding.EncodeToString(b) }

// MarshalText returns the text of String.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText accepts exactly the text of MarshalText.
func (b *Bytes) UnmarshalText(text []byte) error {
	decoded, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err != nil || Bytes(decoded).String() != string(text) {
		return fmt.Errorf("base64url: %w", verify.ErrMalformed)
	}
	*b = decoded
	return nil
}

// parseExact parses the canonical form of a T with exactly its members.
func parseExact[T any](text []byte) (v T, err error) {
	if err := json.Unmarshal(text, &v, json.RejectUnknownMembers(true)); err != nil {
		return v, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	again, err := jcs.Marshal(v)
	if err != nil || !bytes.Equal(again, text) {
		return v, fmt.Errorf("not the exact canonical form: %w", verify.ErrMalformed)
	}
	return v, nil
}
