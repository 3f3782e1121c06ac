package page

// Check is a check of an event or of a log head that the browser performs.
type Check struct {
	Name   string // name of the check in the page's script
	Title  string
	Proves string
	Limits string // what the check does not prove
}

// EventChecks returns the checks of an event in display order.
func EventChecks() []Check {
	return []Check{
		{"envelope", "Canonical form", "The envelope is in canonical JSON and has the digest that was signed.",
			"That its content is true. An agent can sign a false statement."},
		{"signature", "Agent's signature", "The key in the record signed this event.",
			"Who holds the key. The record names the agent, and the log vouches for that."},
		{"record", "Record", "The log's entry commits to this record of this event.",
			"That the service's own statements in the record are true, such as the time of receipt."},
		{"chain", "Chain", "The entry names the one before it, which is in the same tree.",
			"That nothing happened which was never sent to the log."},
		{"inclusion", "Inclusion", "The entry is in the tree that the checkpoint signs, at its index.",
			"That other readers see the same tree. Witnesses and monitors compare trees."},
		{"checkpoint", "Checkpoint", "The log's key signed the size and root of this tree.",
			"Whose key it is. Compare the key with one that you got from another source."},
		{"witnesses", "Witnesses", "Enough witnesses of the log's policy have cosigned the checkpoint.",
			"That the witnesses are independent. This browser took the policy from the service at its first visit."},
		{"consistency", "Consistency", "The tree extends the one that this browser saw last.",
			"Anything about trees that this browser has not seen."},
	}
}
