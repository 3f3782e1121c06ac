package edge_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Every example matches its schema.
func TestExamples(t *testing.T) {
	d := newDocument(t)
	count := 0
	walk("", d.root, func(pointer string, value any) {
		members, _ := value.(map[string]any)
		if members["schema"] == nil {
			return
		}
		check := func(example any) {
			count++
			if err := d.schema(pointer + "/schema").Validate(example); err != nil {
				t.Errorf("%s: %v", pointer, err)
			}
		}
		if example, there := members["example"]; there {
			check(example)
		}
		examples, _ := members["examples"].(map[string]any)
		for _, example := range examples {
			_, named := d.at(referenceOf(example))
			check(named.(map[string]any)["value"])
		}
	})
	if count == 0 {
		t.Error("there are no examples")
	}
}

// example decodes an example into a value.
func example[T any](d *document, name string) (v T) {
	d.t.Helper()
	text, err := json.Marshal(d.object("/components/examples/" + name)["value"])
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	return v
}

// made contains the parts of the example of a new organization that tests need.
type made struct {
	LogKey string `json:"log_key"`
	Agent  struct {
		PublicKey  string `json:"public_key_b64"`
		PrivateKey string `json:"private_key_b64"`
	}
}

// The examples belong to one organization, and those with signatures or proofs verify.
func TestExamplesAreReal(t *testing.T) {
	d := newDocument(t)
	organization := example[made](d, "MadeOrganization")
	key, err := tlog.ParseVerifierKey(organization.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	b, err := verify.ParseBundle(example[json.RawMessage](d, "Bundle"))
	if err != nil {
		t.Fatal(err)
	}
	if report := verify.Check(b, verify.Options{Key: &key}); !report.OK || report.EnvelopeOK == nil {
		t.Errorf("bundle: %v", report.Errors)
	}
	head, err := verify.CheckHead(example[verify.Head](d, "TreeHead"), key)
	if err != nil {
		t.Errorf("head: %v", err)
	}
	if c, err := tlog.OpenCheckpoint([]byte(example[string](d, "Checkpoint")), key); err != nil || c != head {
		t.Errorf("checkpoint: got %+v, %v, want %+v", c, err, head)
	}
	if err := verify.CheckInclusionAnswer(example[verify.InclusionAnswer](d, "InclusionProof"), b.LogIndex, b.EventHash, head); err != nil {
		t.Errorf("inclusion: %v", err)
	}
	consistency := example[verify.Consistency](d, "ConsistencyProof")
	earlier := tlog.Checkpoint{Origin: head.Origin, Size: consistency.From, Root: consistency.FromRoot}
	if err := verify.CheckConsistencyAnswer(consistency, earlier, head); err != nil {
		t.Errorf("consistency: %v", err)
	}
	proof, err := tlog.ParseProof([]byte(example[string](d, "TlogProof")))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := proof.Check(b.EventHash, key); err != nil || c != head {
		t.Errorf("tlog-proof: got %+v, %v", c, err)
	}
	created := example[struct {
		EventHash id.Hash `json:"event_hash"`
	}](d, "Created")
	if created.EventHash != b.EventHash {
		t.Errorf("created: got %s, want %s", created.EventHash, b.EventHash)
	}
}

// The signed example is signed with the key in the example of its agent.
func TestEnvelopeExample(t *testing.T) {
	d := newDocument(t)
	organization := example[made](d, "MadeOrganization")
	seed, err := base64.StdEncoding.DecodeString(organization.Agent.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil || private.Public().String() != organization.Agent.PublicKey {
		t.Fatalf("the keys of the agent are not of each other: %v", err)
	}
	e, err := event.Parse(example[json.RawMessage](d, "Envelope"), event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if form, ok := e.Verify(private.Public()); !ok || form != event.FormDigest {
		t.Errorf("signature: %v, form %s", ok, form)
	}
}
