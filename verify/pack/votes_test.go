package pack_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

func TestSignedVotes(t *testing.T) {
	l := packtest.NewLog(t)
	for _, s := range packtest.VoteSamples(t) {
		r, err := check(s.Parts.Bytes(t), l.Key())
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if one := s.Name == "one signed vote"; !one && (r.VotesSigned != 2 || r.VotesUnsigned != 1 || len(r.Votes) != 3) ||
			one && (r.VotesSigned != 1 || r.VotesUnsigned != 0 || len(r.Votes) != 1) {
			t.Errorf("%s: %d signed, %d unsigned, %d votes", s.Name, r.VotesSigned, r.VotesUnsigned, len(r.Votes))
		}
	}
}

func TestVoteLines(t *testing.T) {
	r, err := check(packtest.VotePack(t).Bytes(t), packtest.NewLog(t).Key())
	if err != nil {
		t.Fatal(err)
	}
	// The verifiers in TypeScript and Python are tested with the same lines.
	want := `vote of acc_1 on apr_1: approve, signed by the passkey R4T9qqvmIXp9XJA65Eed2Wmlfcos_O6FEY2h2GNHt6s, registered 2026-11-18T11:06:43.000Z (entry 2), with the consent of the passkey kcz6--rcUEkuNKrpXb7Yo87rZOCGmKnZ7PB1sHzberg, registered 2026-11-18T11:06:42.000Z (entry 1)
vote of acc_3 on apr_1: approve, in place of acc_5, unsigned: an unverified operator claim
vote of acc_2 on apr_1: approve, signed by the passkey 1QiQ7UhoUjUGi8VJg1tMJnrGthDrDFS-ZGYz50YCM9g, registered 2026-11-18T11:06:44.000Z (entry 3) without the consent of another passkey: whose passkey it is, is an unverified operator claim`
	if got := strings.Join(r.VoteLines(), "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	withheld := "voters.ndjson: that no retirement of a voter key before a vote is withheld"
	for i, want := range []bool{false, true, true, true} {
		r, err := check(packtest.VoteSamples(t)[i].Parts.Bytes(t), packtest.NewLog(t).Key())
		if got := strings.Contains(strings.Join(r.NotCovered, "\n"), withheld); err != nil || got != want {
			t.Errorf("pack %d: %q, %v", i, r.NotCovered, err)
		}
	}
}

func TestWrongVotes(t *testing.T) {
	key := packtest.NewLog(t).Key()
	for _, w := range packtest.WrongVotes(t) {
		if r, err := check(w.Bytes, key); !isWrong(err) {
			t.Errorf("%s: %v, %v", w.Name, r.Votes, err)
		}
	}
}

// A report lists MaxVotes votes and counts the others, and the length of a line is bounded.
func TestVotesAreBounded(t *testing.T) {
	r := pack.Report{Votes: make([]pack.Vote, pack.MaxVotes), VotesSigned: 2, VotesUnsigned: pack.MaxVotes + 5}
	lines := r.VoteLines()
	if want := "and 7 more votes; of all votes, 2 are signed and 1005 are not"; len(lines) != pack.MaxVotes+1 || lines[pack.MaxVotes] != want {
		t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
	p := packtest.VotePack(t)
	*p.File(pack.FileVoters) = strings.Repeat("a", pack.MaxLine+1) + "\n"
	p.CountLines()
	if _, err := check(p.Bytes(t), packtest.NewLog(t).Key()); !isWrong(err) || !strings.Contains(err.Error(), "voters: length of a line") {
		t.Errorf("got %v", err)
	}
}

// A pack may have MaxVoterKeys lines in voters.ndjson but no more. internal/test/readers tests the other verifiers with the
// same packs.
func TestVotersAreBounded(t *testing.T) {
	for _, lines := range []int{pack.MaxVoterKeys, pack.MaxVoterKeys + 1} {
		r, err := check(packtest.VotersPack(t, lines).Bytes(t), packtest.NewLog(t).Key())
		if lines == pack.MaxVoterKeys && (err != nil || r.VotesSigned != 2) {
			t.Errorf("%d lines: got %v", lines, err)
		}
		if lines > pack.MaxVoterKeys && (!isWrong(err) || !strings.Contains(err.Error(), "voters: too many")) {
			t.Errorf("%d lines: got %v", lines, err)
		}
	}
}
