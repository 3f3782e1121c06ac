package admission

// Floor is where all surfaces of a server work: who keeps one of them busy leaves
// the others of its company their part of the processors on each.
type Floor struct {
	Company *Company
	Lobby   *Lobby
	Turns   *Turns

	// ReadWeight is what work weighs in the lobby that does nothing but use a
	// processor: in company one processor is kept free of each party's.
	ReadWeight int
}

// shareInCompany is how many requests of one party are at work for each processor
// while others send too: enough to fill appends, few enough that a single request
// beside them takes about twice its time.
const shareInCompany = 4

// NewFloor returns a floor for a number of processors.
func NewFloor(processors int) *Floor {
	c, share, others := NewCompany(), shareInCompany*processors, max(1, processors-1)
	return &Floor{
		Company: c, Lobby: NewLobby(c, share), Turns: NewTurns(c, processors),
		ReadWeight: (share + others - 1) / others,
	}
}
