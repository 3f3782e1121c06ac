package records

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Claims say whose a secret is: records in the service's own partition, by the hex SHA-256 of the secret. The secret's object is
// a record of the organization. An object must not be without its claim, and a claim without its object does no harm, so a claim
// is written first and removed last. The methods may be called concurrently.
type Claims[T any] struct{ Store[T] }

// NewClaims returns the claims of a kind. message is Store.Message.
func NewClaims[T any](r storage.RecordStore, kind storage.Kind, message string) Claims[T] {
	return Claims[T]{New[T](r, kind, message)}
}

// Find returns the claim of a secret, which does not exist if nobody has the secret.
func (c Claims[T]) Find(ctx context.Context, secret id.Hash) (Versioned[T], error) {
	return c.Get(ctx, id.Service, secret.String())
}

// Create claims a new random secret, then calls create, which stores its object, and returns the error of create. It removes the
// claim if create certainly stored nothing, also if ctx has ended. After fault.OutcomeUnknown the object may be stored, and the
// claim remains.
func (c Claims[T]) Create(ctx context.Context, secret id.Hash, owner T, create func() error) error {
	change, err := c.Put(Versioned[T]{Key: secret.String(), Value: owner})
	if err == nil {
		err = c.Records.Write(ctx, id.Service, []storage.Change{change})
	}
	if err != nil {
		return Unreadable(c.Message, "write "+string(c.Kind), err)
	}
	err = create()
	if err != nil && !fault.Is(err, fault.OutcomeUnknown) {
		c.Remove(context.WithoutCancel(ctx), []id.Hash{secret})
	}
	return err
}

// Remove removes the claims of secrets whose objects were removed. It ignores errors, because such claims do no harm.
func (c Claims[T]) Remove(ctx context.Context, secrets []id.Hash) {
	changes := make([]storage.Change, len(secrets))
	for i, s := range secrets {
		changes[i] = storage.Change{Kind: c.Kind, Key: s.String(), If: storage.AnyVersion}
	}
	if len(changes) > 0 {
		_ = c.Records.Write(ctx, id.Service, changes)
	}
}

// ClaimRecords returns the claims of an owner's secrets as they are stored, for code that copies an organization.
func ClaimRecords[T any](kind storage.Kind, owner T, secrets []id.Hash) ([]storage.Record, error) {
	value, err := json.Marshal(owner)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	claims := make([]storage.Record, len(secrets))
	for i, s := range secrets {
		claims[i] = storage.Record{Kind: kind, Key: s.String(), Value: value}
	}
	return claims, nil
}
