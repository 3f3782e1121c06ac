package pgstore

import "log/slog"

// Options are the address of a store and the limits of its connections. URL is required.
type Options struct {
	// URL is the address of the primary, as for libpq (postgres://user@host/database?parameters, or key=value words).
	// Several hosts with target_session_attrs=read-write are tried in order. It must lead to the server itself or to a
	// pooler in session mode.
	URL string

	// Writers is the number of connections for appends. A tenant's appends all use the same one. If zero, 4.
	Writers int

	// Readers bounds the number of connections for everything else. If zero, 16.
	Readers int

	// ConnectAhead makes Open connect before it returns, and keeps minReaders connections open. Otherwise, each
	// connection is opened when it is first needed, and the call that needs it waits.
	ConnectAhead bool

	// ReadOnly opens an existing store and writes nothing to the database, including its schema: an older schema is
	// rejected.
	ReadOnly bool

	// Version is the version of the program, for messages.
	Version string

	// Keys are the fingerprints of the program's master keys. Open fails while nodes with other keys are alive. If nil,
	// they are not compared.
	Keys []string

	// OnOutdated is called at most once, when the database accepts only newer programs from now on. The process must
	// then exit; until it does, every call fails. If nil, it is not called.
	OnOutdated func(error)

	// Logger receives warnings about the server and lost connections. If nil, they are discarded.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Writers == 0 {
		o.Writers = 4
	}
	if o.Readers == 0 {
		o.Readers = 16
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
