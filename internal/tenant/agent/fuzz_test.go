package agent

import (
	"encoding/base64"
	"regexp"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// The grammar of requested agent ids is compared with its text in the documentation.
func FuzzAgentID(f *testing.F) {
	for _, seed := range []string{"", "ab", "abc", "a.b-c_d", "Abc", "-abc", "agt_1", "agt-1", "bridge_x", "systems", "ledger", "sys", "a\nb", "é12"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{2,63}\z`)
	reserved := regexp.MustCompile(`\A(agt_|bridge_|system|ledger)`)
	f.Fuzz(func(t *testing.T, s string) {
		want := form.MatchString(s) && !reserved.MatchString(s)
		if err := checkAgentID(id.Agent(s)); (err == nil) != want {
			t.Errorf("%q: got %v, want accepted %v", s, err, want)
		}
	})
}

// An accepted registration has one spelling.
func FuzzRegistration(f *testing.F) {
	private, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize))
	if err != nil {
		f.Fatal(err)
	}
	proof := private.Sign([]byte("any"))
	good := base64.StdEncoding.EncodeToString(proof[:])
	f.Add("k1", private.Public().String(), good)
	f.Add("", private.Public().String()+"\n", good)
	f.Add("system_1", private.Public().String(), good[:87]+"9")
	f.Add("a/b", "", "====")
	f.Fuzz(func(t *testing.T, key, public, proof string) {
		r := Registration{KeyID: id.Key(key), PublicKey: public, Proof: proof}
		parsed, signature, err := r.parseMembers()
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("got %v", err)
			}
			return
		}
		if parsed.String() != public || base64.StdEncoding.EncodeToString(signature) != proof {
			t.Errorf("accepted %q and %q, which read %s and %x", public, proof, parsed, signature)
		}
	})
}
