package limit

// Floor is where all surfaces of a server work: who keeps one of them busy leaves
// the others of its company their part of the processors on each.
type Floor struct {
	Company *Company
	Lobby   *Lobby
	Turns   *Turns
}

// shareInCompany is how many requests of one party are at work for each processor
// while others send too: enough to fill appends, few enough that a single request
// beside them takes about twice its time.
const shareInCompany = 4

// NewFloor returns a floor for a number of processors.
func NewFloor(processors int) *Floor {
	c := NewCompany()
	return &Floor{Company: c, Lobby: NewLobby(c, shareInCompany*processors), Turns: NewTurns(c, processors)}
}
