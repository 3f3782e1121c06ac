package factor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Contexts of the sealed cookies.
const (
	createContext  = "passkey-create"
	useContext     = "passkey-use"
	pendingContext = "second-factor"
)

// ceremony is a challenge for a browser, which stores it in a sealed cookie.
type ceremony struct {
	Challenge string     `json:"challenge"`
	Handle    []byte     `json:"handle,omitzero"`  // of the account that gets the passkey
	Account   account.ID `json:"account,omitzero"` // "" for a new account
	Ends      id.Instant `json:"ends"`
}

// beginCeremony seals a challenge that expires after Life.
func (f *Factors) beginCeremony(context string, c ceremony) (string, error) {
	c.Ends = id.InstantOf(f.Clock().Add(Life))
	return seal.Cookie(f.Sealer, context, c)
}

// openCeremony returns the challenge of a cookie, if it has not expired.
func (f *Factors) openCeremony(context, cookie string) (c ceremony, err error) {
	if err = seal.OpenCookie(f.Sealer, context, cookie, &c); err == nil && f.currentTime() >= c.Ends {
		err = errors.New("the challenge has expired")
	}
	return c, err
}

func (c *ceremony) answeredKey() string {
	return endKey(c.Ends) + "/" + id.Hash(sha256.Sum256([]byte(c.Challenge))).String()
}

func endKey(at id.Instant) string { return fmt.Sprintf("%016x", uint64(at)) }

// sweep is the number of expired answered challenges that each new one removes.
const sweep = 16

// answeredChanges returns the changes that mark a challenge as answered, so that it cannot be used again, and remove
// some expired ones. Writing them fails if the challenge was already answered.
func (f *Factors) answeredChanges(ctx context.Context, c *ceremony) ([]storage.Change, error) {
	expired, err := f.Records.Scan(ctx, id.Service, kindAnswered, "", endKey(f.currentTime()), sweep)
	if err != nil {
		return nil, records.Unreadable(unreadable, "sweep challenges", err)
	}
	changes := []storage.Change{{Kind: kindAnswered, Key: c.answeredKey(), Value: []byte("{}")}}
	for i := range expired {
		changes = append(changes, storage.Change{Kind: kindAnswered, Key: expired[i].Key, If: storage.AnyVersion})
	}
	return changes, nil
}

// wasAnswered reports whether a challenge was already answered.
func (f *Factors) wasAnswered(ctx context.Context, c *ceremony) (bool, error) {
	_, err := f.Records.Get(ctx, id.Service, kindAnswered, c.answeredKey())
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, records.Unreadable(unreadable, "read challenge", err)
	}
	return true, nil
}

// Refuse returns the same error for every passkey that is rejected. cause is only for the log.
func Refuse(cause error) error {
	return &fault.Error{Kind: fault.Unauthorized, Code: "passkey_refused",
		Message: "The passkey was refused", Err: cause}
}

// errCreationRejected returns the same error for every new passkey that is rejected. cause is only for the log.
func errCreationRejected(cause error) error {
	return &fault.Error{Kind: fault.Invalid, Code: "passkey_refused",
		Message: "The new passkey was refused", Err: cause}
}
