package pgstore

import "log/slog"

// Options are the address of a store and the bounds on its connections. URL is required.
type Options struct {
	// URL is the address of the primary, in the form of libpq (postgres://user@host/database?parameters or key=value
	// words). Several hosts with target_session_attrs=read-write are tried in their order. It must lead to the server
	// itself or to a pooler that keeps a session on one connection.
	URL string

	// Writers is the number of connections that append. A tenant's appends all go through the same one. 0 means 4.
	Writers int

	// Readers bounds the connections of everything else. 0 means 16.
	Readers int

	// ReadOnly opens a store that is there and writes nothing to the database, not
	// even its schema: an older one is refused.
	ReadOnly bool

	// Version is that of the program, for people.
	Version string

	// Keys are the fingerprints of the master keys of the program. While nodes live whose keys are others, nothing is
	// opened. nil: not compared.
	Keys []string

	// OnOutdated is called at most once, when the database takes newer programs only from now on. The process MUST end
	// then; until it does, every call fails. nil: no call is made.
	OnOutdated func(error)

	// Logger gets warnings about the server and lost connections. nil discards them.
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
