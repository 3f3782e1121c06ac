package factor

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

const (
	codes      = 10 // of an account
	codeLength = 16 // letters and digits of base32
	codeGroup  = 4  // between two dashes
)

// newCode returns a code in the form in which it is displayed: abcd-efgh-ijkl-mnop.
func newCode() string {
	groups := slices.Collect(slices.Chunk([]byte(strings.ToLower(rand.Text())[:codeLength]), codeGroup))
	text := make([]string, len(groups))
	for i, g := range groups {
		text[i] = string(g)
	}
	return strings.Join(text, "-")
}

// hashCode returns the hash of a code as a person typed it. Neither a salt nor slow hashing is needed, because a code
// has 80 random bits.
func hashCode(who account.ID, typed string) string {
	bare := strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(typed))
	return id.Hash(sha256.Sum256([]byte(string(who) + "\x00" + bare))).String()
}

// MakeCodes replaces all recovery codes of an account by new ones, and ends its sessions. The codes are not stored.
func (f *Factors) MakeCodes(
	ctx context.Context, who account.Account, v account.Visit,
) (account.Account, []string, error) {
	shown := make([]string, codes)
	hashes := make([]string, codes)
	for i := range shown {
		shown[i] = newCode()
		hashes[i] = hashCode(who.ID, shown[i])
	}
	changed, err := f.Accounts.ChangeFactors(ctx, who, account.MadeCodes, v,
		func(ctx context.Context, _ account.Account) ([]storage.Change, error) {
			r, err := f.readFactors(ctx, who.ID)
			if err != nil {
				return nil, err
			}
			r.Value.Codes, r.Value.MadeAt = hashes, f.currentTime()
			stored, err := f.factors.Put(r)
			return []storage.Change{stored}, err
		})
	return changed, shown, err
}

// UseCode uses up a recovery code of an account. It returns fault.Unauthorized with code wrong_code if the code is
// wrong or used, and fault.RateLimited after too many wrong codes for the account or from the network. The right code
// is still accepted then, so that nobody can lock out the owner: a code has 80 random bits, so guessing is hopeless
// at any rate.
func (f *Factors) UseCode(ctx context.Context, who account.Account, typed string, from netip.Addr,
	v account.Visit) error {
	given := hashCode(who.ID, typed)
	for range attempts {
		stale, err := f.useCode(ctx, who, given, v)
		if errors.Is(err, errWrongCode) {
			return cmp.Or(f.Accounts.CountWrongCode(who, from, v.Browser), err)
		}
		if err != nil || !stale {
			return err
		}
	}
	return errBusy()
}

var errWrongCode = &fault.Error{Kind: fault.Unauthorized, Code: "wrong_code", Message: "Wrong recovery code"}

func (f *Factors) useCode(
	ctx context.Context, who account.Account, given string, v account.Visit,
) (stale bool, err error) {
	r, err := f.readFactors(ctx, who.ID)
	if err != nil {
		return false, err
	}
	at := -1
	for i, stored := range r.Value.Codes {
		if subtle.ConstantTimeCompare([]byte(stored), []byte(given)) == 1 {
			at = i
		}
	}
	if at < 0 {
		return false, errWrongCode
	}
	r.Value.Codes = slices.Delete(slices.Clone(r.Value.Codes), at, at+1)
	stored, err := f.factors.Put(r)
	if err != nil {
		return false, err
	}
	event, err := f.Accounts.DescribeCodeUse(ctx, who, v)
	if err != nil {
		return false, err
	}
	return f.writeChanges(ctx, "use recovery code", append([]storage.Change{stored}, event...))
}
