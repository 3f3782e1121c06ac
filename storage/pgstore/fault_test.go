package pgstore

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/storage"
)

// The results of errors of the server, by SQLSTATE.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name, code, constraint string
		want                   error
	}{
		{"serialization failure", "40001", "", storage.ErrConflict},
		{"deadlock", "40P01", "", storage.ErrConflict},
		{"index taken", "23505", "event_pkey", storage.ErrConflict},
		{"ledger made by another", "23505", "head_pkey", storage.ErrConflict},
		{"locked", "55P03", "", storage.ErrUnavailable},
		{"disk full", "53100", "", storage.ErrUnavailable},
		{"too many connections", "53300", "", storage.ErrUnavailable},
		{"read-only", "25006", "", storage.ErrUnavailable},
		{"shutting down", "57P01", "", storage.ErrUnavailable},
		{"system error", "58030", "", storage.ErrUnavailable},
		{"internal error", "XX000", "", storage.ErrUnavailable},
		{"data corrupted", "XX001", "", storage.ErrCorrupt},
		{"index corrupted", "XX002", "", storage.ErrCorrupt},
	}
	known := []error{storage.ErrConflict, storage.ErrDuplicate, storage.ErrUnknown, storage.ErrUnavailable, storage.ErrBroken, storage.ErrCorrupt}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cause := &pgconn.PgError{Code: test.code, ConstraintName: test.constraint, SeverityUnlocalized: "ERROR"}
			if _, ok := refusedError(cause); !ok {
				t.Error("an error of the server is no refusal")
			}
			got := new(connectionQueue).refusal(t.Context(), nil, part{}, cause)
			for _, kind := range known {
				if errors.Is(got, kind) != (kind == test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
		})
	}
	fatal := &pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}
	if _, ok := refusedError(fatal); ok {
		t.Error("an error that ended the connection is taken for a refusal")
	}
}
