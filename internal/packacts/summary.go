package packacts

import (
	"cmp"
	"slices"
)

// Summary counts acts by what became of them.
type Summary struct {
	Count        uint64
	Outcomes     map[Outcome]uint64
	ApprovedDone uint64     // acts that are done and whose approval was given with a vote in the pack
	OutsideDone  uint64     // acts that are done and whose approval was given, without a vote in the pack
	RefusedDone  uint64     // acts that are done although their approval was refused, or has expired or was cancelled
	Approvers    []Approver // the first MaxApprovers accounts that voted, ascending by name
}

// MaxApprovers is the maximum number of approvers of a summary.
const MaxApprovers = 1000

// Approver is an account that voted on acts.
type Approver struct {
	Account  string
	Approved uint64 // acts whose approval was given with the account's vote
	Done     uint64 // those of them that are done
	Refused  uint64 // acts whose approval was refused by the account
}

// Add counts an act.
func (s *Summary) Add(line *Line) {
	if s.Outcomes == nil {
		s.Outcomes = make(map[Outcome]uint64)
	}
	s.Count++
	s.Outcomes[line.Outcome]++
	done := line.Outcome == Done
	switch line.Status {
	case StatusApproved:
		voters := line.Voters(true)
		switch {
		case done && len(voters) > 0:
			s.ApprovedDone++
		case done:
			s.OutsideDone++
		}
		for _, v := range voters {
			if p := s.approver(v.Account); p != nil {
				if p.Approved++; done {
					p.Done++
				}
			}
		}
	case StatusRefused, StatusExpired, StatusCancelled:
		if done {
			s.RefusedDone++
		}
	}
	if line.Status == StatusRefused {
		for _, v := range line.Voters(false) {
			if p := s.approver(v.Account); p != nil {
				p.Refused++
			}
		}
	}
}

// approver returns the counts of an account, or nil if there are too many accounts.
func (s *Summary) approver(account string) *Approver {
	at, found := slices.BinarySearchFunc(s.Approvers, account, func(p Approver, account string) int { return cmp.Compare(p.Account, account) })
	if !found {
		if len(s.Approvers) >= MaxApprovers {
			return nil
		}
		s.Approvers = slices.Insert(s.Approvers, at, Approver{Account: account})
	}
	return &s.Approvers[at]
}
