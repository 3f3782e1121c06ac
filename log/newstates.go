package log

// Moves begins to collect the ledgers that get a new published state. Moves before the call are not collected.
func (l *Ledgers) Moves() *Moves { return l.moves.New() }

// Relisted begins to collect the ledgers whose Listing may have changed, as Moves does. It may collect others too.
func (l *Ledgers) Relisted() *Moves { return l.relisted.New() }
