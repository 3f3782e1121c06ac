package account

import (
	"fmt"
	"github.com/agentledger/agentledger/internal/records"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the entries of an organization's record in the service's own partition, for packages that
// copy an organization. For a membership, these are the entry in the account's list and the account, whose Value is
// nil, because only the store has it. Sessions are not included.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindMembership {
		return nil, nil
	}
	return []storage.Record{
		{Kind: kindPlace, Key: membershipKey(ID(r.Key), t), Value: []byte("{}")},
		{Kind: kindAccount, Key: r.Key},
	}, nil
}

// RoleIn returns the role that a membership gives its account, whose ID is the key. member is false for other records.
func RoleIn(r storage.Record) (role Role, member bool, err error) {
	if r.Kind != kindMembership {
		return "", false, nil
	}
	v, err := records.Decode[membershipRecord](r)
	return v.Value.Role, true, err
}

// IsAccount reports whether r is the record of an account. If there already is an account with the same ID and
// address, an import keeps it, with its password.
func IsAccount(r storage.Record) bool { return r.Kind == kindAccount }

// AddressRecord returns the record that assigns an address to its account. owned is false if the address belongs to
// another account, which has proved it.
func AddressRecord(r storage.Record) (address storage.Record, owned bool, err error) {
	var stored accountRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil || !IsAccount(r) {
		return storage.Record{}, false, fmt.Errorf("account: %w", storage.ErrCorrupt)
	}
	value, err := json.Marshal(emailRecord{Account: ID(r.Key)})
	return storage.Record{Kind: kindEmail, Key: stored.Email, Value: value}, !stored.Released, err
}

// IsAddress reports whether r assigns an address to an account.
func IsAddress(r storage.Record) bool { return r.Kind == kindEmail }

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindMembership: checkMembership,
		kindPlace:      records.Check[struct{}],
		kindAccount:    checkAccount,
		kindEmail:      records.Check[emailRecord],
	}
}

func checkMembership(r storage.Record) error {
	v, err := records.Decode[membershipRecord](r)
	if err == nil && !v.Value.Role.Valid() {
		err = fmt.Errorf("membership: %w: role is not known", storage.ErrCorrupt)
	}
	return err
}

func checkAccount(r storage.Record) error {
	v, err := records.Decode[accountRecord](r)
	if err == nil && v.Value.Email == "" {
		err = fmt.Errorf("account: %w: it has no address", storage.ErrCorrupt)
	}
	return err
}

// FactKinds are the kinds of records that have facts.
var FactKinds = []storage.Kind{kindMembership}

// Facts returns the facts in a record that events of the log state too (package recordcheck).
func Facts(r storage.Record) (map[string]string, error) {
	if r.Kind != kindMembership {
		return nil, nil
	}
	v, err := records.Decode[membershipRecord](r)
	m := v.Value
	return map[string]string{
		"member/" + r.Key: m.MembershipID, "member/" + r.Key + "/role": string(m.Role),
		"member/" + r.Key + "/suspended": fmt.Sprint(m.Suspended),
	}, err
}
