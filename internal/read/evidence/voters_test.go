package evidence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify/pack"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// voting appends events about voter keys and votes, like the service.
type voting struct {
	*world
	t      testing.TB
	tenant id.Tenant
}

func (v voting) state(kind sysevent.Kind, principal string, payload any) id.Index {
	v.t.Helper()
	text, err := jcs.Marshal(payload)
	if err != nil {
		v.t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		v.t.Fatal(err)
	}
	at := v.State(v.t, v.tenant).Size()
	_, err = v.SystemEvents.Append(v.t.Context(), v.tenant, principal, func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: kind, Payload: object}}}, nil
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return at
}

func (v voting) register(account string, key, by *passkeytest.Voter) id.Index {
	v.t.Helper()
	bucket := signedvote.Bucket(id.InstantOf(v.Clock()))
	text, err := signedvote.KeyText(v.State(v.t, v.tenant).Identity().Origin, account, key.ID, key.Key, bucket)
	if err != nil {
		v.t.Fatal(err)
	}
	r := signedvote.Registration{AccountID: account, CredentialID: key.ID, Possession: key.Sign(text, bucket), PublicKey: key.Key,
		RPID: key.Credential.RPID, Transition: signedvote.Registered, WebOrigin: key.WebOrigin}
	if by != nil {
		consent := by.Sign(text, bucket)
		r.Consent = &consent
	}
	return v.state(signedvote.KeyKind, account, r)
}

func (v voting) retire(account string, key *passkeytest.Voter) id.Index {
	v.t.Helper()
	return v.state(signedvote.KeyKind, account, signedvote.Retirement{AccountID: account, CredentialID: key.ID, Transition: signedvote.Retired})
}

func (v voting) vote(account, approval string, key *passkeytest.Voter) id.Index {
	v.t.Helper()
	payload := map[string]any{"approval_id": approval, "action_digest": id.Hash{9}.String(), "transition": "voted", "step": 1, "vote": "approve"}
	if key != nil {
		bucket := signedvote.Bucket(id.InstantOf(v.Clock()))
		signed := signedvote.Vote{Origin: v.State(v.t, v.tenant).Identity().Origin, ApprovalID: approval, ActionDigest: id.Hash{9}, Vote: "approve"}
		text, err := signed.Text(bucket)
		if err != nil {
			v.t.Fatal(err)
		}
		payload["signed"] = key.Sign(text, bucket)
	}
	return v.state(sysevent.Approval, account, payload)
}

// A pack contains exactly the events about voter keys that its signed votes need, wherever they are.
func TestVoters(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		v, other := voting{w, t, red}, voting{w, t, blue}
		phone, key, laptop := passkeytest.NewVoter(t, "phone", "ES256"), passkeytest.NewVoter(t, "key", "EdDSA"), passkeytest.NewVoter(t, "laptop", "RS256")
		other.register("acc_1", phone, nil)
		first := v.register("acc_1", phone, nil)
		gone := v.retire("acc_1", phone)
		again := v.register("acc_1", phone, nil)
		second := v.register("acc_1", key, phone)
		v.register("acc_1", laptop, key) // signs nothing
		v.register("acc_2", phone, nil)  // of another account
		third := v.register("acc_3", laptop, nil)
		w.fill(t, red, 3)
		before := v.State(t, red).Size()
		vote := v.vote("acc_1", "apr_1", key)
		v.vote("acc_2", "apr_1", nil)
		v.vote("acc_3", "apr_1", laptop)
		after := v.State(t, red).Size()
		late := v.retire("acc_1", key)
		v.register("acc_1", key, phone) // after the vote
		v.retire("acc_2", phone)

		for query, want := range map[string][]id.Index{
			"":                           {first, gone, again, second, third, late},
			"envelopes=1":                {first, gone, again, second, third, late},
			fmt.Sprintf("from=%d", vote): {first, gone, again, second, third, late},
			fmt.Sprintf("from=%d&to=%d", vote, vote+1): {first, gone, again, second, late},
			fmt.Sprintf("to=%d", before):               nil,
			fmt.Sprintf("from=%d", after):              nil,
		} {
			text := w.export(t, red, query)
			r := w.check(t, red, text)
			var got []id.Index
			for line := range strings.Lines(filesOf(t, text)[pack.FileVoters]) {
				var e struct {
					Entry string `json:"entry"`
				}
				var entry struct {
					Seq uint64 `json:"seq"`
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(e.Entry), &entry); err != nil {
					t.Fatal(err)
				}
				got = append(got, id.Index(entry.Seq-1))
			}
			if _, has := filesOf(t, text)[pack.FileVoters]; !slices.Equal(got, want) || has != (want != nil) {
				t.Errorf("%q: got %v, want %v", query, got, want)
			}
			page := filesOf(t, text)[pack.FileReport]
			if has := strings.Contains(page, "signed by the approver&#39;s passkey "+key.Key.Thumbprint()+", registered "); has != (want != nil) {
				t.Errorf("%q: the page names the passkey: %v", query, has)
			}
			if want == nil && r.VotesSigned > 0 {
				t.Errorf("%q: %d signed votes", query, r.VotesSigned)
			}
		}
	})
}
