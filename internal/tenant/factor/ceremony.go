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

// ceremony is a challenge that a browser was given and holds, sealed.
type ceremony struct {
	Challenge string     `json:"challenge"`
	Handle    []byte     `json:"handle,omitzero"`  // of the account that gets a passkey
	Account   account.ID `json:"account,omitzero"` // "": one that is made
	Ends      id.Instant `json:"ends"`
}

// beginCeremony seals a challenge of now.
func (f *Factors) beginCeremony(context string, c ceremony) (string, error) {
	c.Ends = id.InstantOf(f.Clock().Add(Life))
	return seal.Cookie(f.Sealer, context, c)
}

// openCeremony returns the challenge of a cookie, if it is not over.
func (f *Factors) openCeremony(context, cookie string) (c ceremony, err error) {
	if err = seal.OpenCookie(f.Sealer, context, cookie, &c); err == nil && f.currentTime() >= c.Ends {
		err = errors.New("the challenge is over")
	}
	return c, err
}

func (c *ceremony) answeredKey() string {
	return endKey(c.Ends) + "/" + id.Hash(sha256.Sum256([]byte(c.Challenge))).String()
}

func endKey(at id.Instant) string { return fmt.Sprintf("%016x", uint64(at)) }

// sweep is how many answered challenges that are over each new one takes away.
const sweep = 16

// answeredChanges returns the changes that make a challenge of no use again, and take away some that are
// over. They fail when it was answered before.
func (f *Factors) answeredChanges(ctx context.Context, c *ceremony) ([]storage.Change, error) {
	over, err := f.Records.Scan(ctx, id.Service, kindAnswered, "", endKey(f.currentTime()), sweep)
	if err != nil {
		return nil, records.Unreadable(unreadable, "sweep challenges", err)
	}
	changes := []storage.Change{{Kind: kindAnswered, Key: c.answeredKey(), Value: []byte("{}")}}
	for i := range over {
		changes = append(changes, storage.Change{Kind: kindAnswered, Key: over[i].Key, If: storage.AnyVersion})
	}
	return changes, nil
}

// wasAnswered reports whether a challenge was answered before.
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

// Refuse is the one answer to every passkey that does not count.
func Refuse(cause error) error {
	return &fault.Error{Kind: fault.Unauthorized, Code: "passkey_refused",
		Message: "The passkey was refused", Err: cause}
}

// errNotTaken is the one answer to every new passkey that can't be.
func errNotTaken(cause error) error {
	return &fault.Error{Kind: fault.Invalid, Code: "passkey_refused",
		Message: "The new passkey was refused", Err: cause}
}
