package vectors

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Our own verifiers agree with the published files.
func TestOurs(t *testing.T) {
	for _, f := range kinds(t) {
		published, err := Read(root, f.Kind)
		if err != nil {
			t.Fatal(err)
		}
		verdicts := map[string]int{}
		for _, v := range published.Vectors {
			verdicts[v.Verdict]++
			r := reader{v: v}
			got, err := r.check(f.Kind)
			if r.err != nil {
				t.Fatalf("%s: %v", f.Kind, r.err)
			}
			if !r.right(got, err) {
				t.Errorf("%s: %s: got %v %v, want %s %v", f.Kind, v.Name, err, got, v.Verdict, v.Expect)
			}
		}
		if verdicts[Accept] == 0 || verdicts[Refuse] == 0 {
			t.Errorf("%s: %v", f.Kind, verdicts)
		}
	}
}

// reader reads an input. If a vector does not have the expected layout, err is set.
type reader struct {
	v   Vector
	err error
}

// right reports whether the vector says so.
func (r *reader) right(got map[string]any, err error) bool {
	return (err == nil) == (r.v.Verdict == Accept) && (r.v.Expect == nil || reflect.DeepEqual(got, r.v.Expect))
}

func (r *reader) text(name string) string {
	s, err := r.v.Text(name)
	r.err = errors.Join(r.err, err)
	return s
}

func (r *reader) bytes(name string) []byte {
	b, err := hex.DecodeString(r.text(name))
	r.err = errors.Join(r.err, err)
	return b
}

var errRefused = errors.New("refused")

// hashes and number read what an implementation would get as JSON, which rejects a hash of another length or a number
// out of range.
func hashesOf(texts ...string) (all []id.Hash, err error) {
	for _, s := range texts {
		h, err := id.ParseHash(s)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

func (r *reader) proof(numbers [2]string, hashes [2]string) (n [2]id.Index, h [2]id.Hash, proof []id.Hash, err error) {
	for i := range n {
		v, err := strconv.ParseUint(r.text(numbers[i]), 10, 64)
		if err != nil || strconv.FormatUint(v, 10) != r.text(numbers[i]) {
			return n, h, nil, errRefused
		}
		n[i] = id.Index(v)
	}
	two, err := hashesOf(r.text(hashes[0]), r.text(hashes[1]))
	if err != nil {
		return n, h, nil, err
	}
	list, err := r.v.List("hashes")
	r.err = errors.Join(r.err, err)
	proof, err = hashesOf(list...)
	return n, [2]id.Hash(two), proof, err
}

// check returns the verdict of our packages.
func (r *reader) check(kind string) (map[string]any, error) {
	switch kind {
	case "public-key":
		_, err := edkey.ParsePublic(r.bytes("public_key"))
		return nil, err
	case "signature":
		k, err := edkey.ParsePublic(r.bytes("public_key"))
		if err == nil && !k.Verify(r.bytes("message"), r.bytes("signature")) {
			err = errRefused
		}
		return nil, err
	case "log-key":
		k, err := tlog.ParseVerifierKey(r.text("vkey"))
		public := k.Public().Bytes()
		return keySaid(k.Name(), k.Hash(), public[:]), err
	case "witness-key", "mldsa-witness-key":
		k, err := tlog.ParseWitnessKey(r.text("vkey"))
		if err != nil {
			return nil, err
		}
		return keySaid(k.Name(), k.Hash(), k.Typed()[1:]), nil
	case "note", "checkpoint", "cosignature", "mldsa-cosignature", "tlog-proof":
		return r.signed(kind)
	case "inclusion":
		n, h, proof, err := r.proof([2]string{"index", "size"}, [2]string{"leaf", "root"})
		if err == nil {
			err = tlog.CheckInclusion(n[0], n[1], h[0], proof, h[1])
		}
		return nil, err
	case "consistency":
		n, h, proof, err := r.proof([2]string{"from", "to"}, [2]string{"from_root", "to_root"})
		if err == nil {
			err = tlog.CheckConsistency(n[0], n[1], h[0], h[1], proof)
		}
		return nil, err
	case "quorum-time":
		return r.quorumTime()
	case "policy", "quorum":
		return r.trusted(kind)
	case "keys":
		keys, err := verify.ParseKeys([]byte(r.text("keys")))
		got := []any{}
		for _, k := range keys {
			got = append(got, k.Key.String())
		}
		return map[string]any{"log_keys": got}, err
	case "key-statement":
		known, err := verify.ParseKeys([]byte(r.text("keys")))
		r.err = errors.Join(r.err, err)
		b, err := verify.ParseBundle([]byte(r.text("bundle")))
		if err != nil {
			return nil, err
		}
		s, err := verify.CheckKeyStatement(b, known)
		return map[string]any{"vkey": s.Key, "by": s.By, "from_size": fmt.Sprint(s.From)}, err
	case "signed-vote":
		return r.signedVote()
	case "tool-receipt":
		return r.checkToolReceipt()
	case "policy-input":
		return r.checkPolicyInput()
	case "canonical-json":
		canonical, err := jcs.Canonicalize([]byte(r.text("json")), jcs.MaxDepth)
		return map[string]any{"canonical": string(canonical)}, err
	case "arguments":
		return r.arguments()
	case "entry":
		e, err := event.ParseEntry([]byte(r.text("entry")))
		hash := e.Hash()
		return map[string]any{"seq": fmt.Sprint(e.Seq), "event_hash": hash.String()}, err
	case "bundle", "second-proof":
		return r.bundle(kind)
	}
	r.err = fmt.Errorf("no kind %s", kind)
	return nil, nil
}

func keySaid(name string, hash tlog.KeyHash, public []byte) map[string]any {
	return map[string]any{"name": name, "key_id": hash.String(), "public_key": hexOf(public)}
}

// signed is check for notes and for what contains one.
func (r *reader) signed(kind string) (map[string]any, error) {
	if strings.HasSuffix(kind, "cosignature") {
		k, err := tlog.ParseWitnessKey(r.text("witness"))
		r.err = errors.Join(r.err, err)
		n, err := tlog.ParseNote([]byte(r.text("note")))
		if err != nil {
			return nil, err
		}
		at, err := k.Cosigned(n)
		return map[string]any{"time": fmt.Sprint(int64(at) / 1000)}, err
	}
	k, err := tlog.ParseVerifierKey(r.text("key"))
	r.err = errors.Join(r.err, err)
	switch kind {
	case "note":
		n, err := tlog.ParseNote([]byte(r.text("note")))
		if err == nil {
			err = n.Verify(k)
		}
		return map[string]any{"text": n.Text}, err
	case "checkpoint":
		c, err := tlog.OpenCheckpoint([]byte(r.text("note")), k)
		return map[string]any{"origin": string(c.Origin), "size": fmt.Sprint(c.Size), "root": c.Root.String()}, err
	}
	p, err := tlog.ParseProof([]byte(r.text("proof")))
	if err != nil {
		return nil, err
	}
	leaf := tlog.LeafHash([]byte(r.text("entry")))
	c, err := p.Check(leaf, k)
	if err != nil {
		return r.unknownSigners(p, leaf, k), err
	}
	return map[string]any{"index": fmt.Sprint(p.Index), "size": fmt.Sprint(c.Size)}, err
}

// unknownSigners returns what a tlog-proof states if its only problem is the key.
func (r *reader) unknownSigners(p tlog.Proof, leaf id.Hash, k tlog.VerifierKey) map[string]any {
	c, err := tlog.ReadCheckpoint(p.Checkpoint)
	signers := verify.UnknownSigners(p.Checkpoint, []tlog.VerifierKey{k})
	if err != nil || len(signers) == 0 || tlog.CheckInclusion(p.Index, c.Size, leaf, p.Hashes, c.Root) != nil {
		return nil
	}
	return map[string]any{"unknown_keys": anys(signers)}
}

func anys(texts []string) (all []any) {
	for _, s := range texts {
		all = append(all, s)
	}
	return all
}

// trusted is check for policies.
func (r *reader) trusted(kind string) (map[string]any, error) {
	p, err := trust.Parse([]byte(r.text("policy")))
	if kind == "policy" {
		return nil, err
	}
	r.err = errors.Join(r.err, err)
	if r.err != nil {
		return nil, nil
	}
	o, err := p.Open([]byte(r.text("note")))
	by := []any{}
	for _, c := range o.Cosignatures {
		by = append(by, c.Witness.Name)
	}
	return map[string]any{"witnessed_by": by}, err
}

// quorumTime is check for the times of cosignatures.
func (r *reader) quorumTime() (map[string]any, error) {
	p, err := trust.Parse([]byte(r.text("policy")))
	r.err = errors.Join(r.err, err)
	n, err := tlog.ParseNote([]byte(r.text("note")))
	r.err = errors.Join(r.err, err)
	now, err := strconv.ParseInt(r.text("now"), 10, 64)
	if r.err = errors.Join(r.err, err); r.err != nil {
		return nil, nil
	}
	times := p.Times(p.Cosignatures(n), id.Instant(now*1000))
	if !times.Known {
		return nil, errRefused
	}
	ahead := []any{}
	for _, c := range times.Ahead {
		ahead = append(ahead, c.Witness.Name)
	}
	return map[string]any{"by": fmt.Sprint(int64(times.By) / 1000), "since": fmt.Sprint(int64(times.Since) / 1000), "in_future": ahead}, nil
}

// bundle is check for bundles: the content of the report, and whether everything is valid.
func (r *reader) bundle(kind string) (map[string]any, error) {
	o := r.options("key", "keys")
	if kind == "second-proof" {
		d := r.options("directory_key", "directory_keys")
		o.Directory = &d
	}
	b, err := verify.ParseBundle([]byte(r.text("bundle")))
	if err != nil {
		return nil, err
	}
	report := verify.Check(b, o)
	if !report.OK || r.has("directory_key") && b.Directory == nil {
		err = errRefused
	}
	got := map[string]any{"inclusion_ok": report.InclusionOK, "checkpoint_ok": report.CheckpointOK, "chain_ok": report.ChainOK}
	for name, ok := range map[string]*bool{"record_ok": report.RecordOK, "signature_ok": report.SignatureOK, "envelope_ok": report.EnvelopeOK, "directory_ok": report.DirectoryOK} {
		switch {
		case ok != nil:
			got[name] = *ok
		case name != "directory_ok" || kind == "second-proof":
			got[name] = nil
		}
	}
	if keys := verify.UnknownKeys(b, o); len(keys) > 0 {
		var signers []string
		for _, k := range keys {
			signers = append(signers, verify.Signer(k.Name(), k.Hash()))
		}
		got["unknown_keys"] = anys(signers)
	}
	if !r.has("directory_policy") {
		return got, err
	}
	return r.directoryQuorum(b, got, err)
}

func (r *reader) has(name string) bool { _, there := r.v.Input[name]; return there }

// options are the pinned key and the list of keys, if they are given.
func (r *reader) options(key, keys string) (o verify.Options) {
	if r.has(key) {
		k, err := tlog.ParseVerifierKey(r.text(key))
		o.Key, r.err = &k, errors.Join(r.err, err)
	}
	if r.has(keys) {
		retired, err := verify.ParseKeys([]byte(r.text(keys)))
		o.Retired, r.err = retired, errors.Join(r.err, err)
	}
	return o
}

// directoryQuorum adds who cosigned the directory's checkpoint, which must be enough.
func (r *reader) directoryQuorum(b *verify.Bundle, got map[string]any, err error) (map[string]any, error) {
	p, fault := trust.Parse([]byte(r.text("directory_policy")))
	r.err = errors.Join(r.err, fault)
	if r.err != nil || b.Directory == nil {
		return nil, errors.Join(err, errRefused)
	}
	n, fault := tlog.ParseNote([]byte(b.Directory.Bundle.Checkpoint))
	if fault != nil {
		return nil, errors.Join(err, fault)
	}
	by, all := []any{}, p.Cosignatures(n)
	for _, c := range all {
		by = append(by, c.Witness.Name)
	}
	if got["directory_witnessed_by"] = by; !p.Reached(all) {
		err = errors.Join(err, errRefused)
	}
	return got, err
}

// signedVote checks a vote under the registration of its passkey.
func (r *reader) signedVote() (map[string]any, error) {
	at := func(name string) id.Instant {
		i, err := id.ParseInstant(r.text(name))
		r.err = errors.Join(r.err, err)
		return i
	}
	origin := id.Origin(r.text("origin"))
	registered, retired, err := signedvote.ParseKeyEvent([]byte(r.text("registration")))
	if err == nil && retired != nil {
		err = verify.ErrMismatch
	}
	if err == nil {
		err = registered.CheckPossession(origin, at("registered_at"))
	}
	if err != nil {
		return nil, err
	}
	var p struct {
		Approval string         `json:"approval_id"`
		Action   id.Hash        `json:"action_digest"`
		Vote     string         `json:"vote"`
		Reason   *string        `json:"reason"`
		Code     *string        `json:"reason_code"`
		Signed   jsontext.Value `json:"signed"`
	}
	if err := json.Unmarshal([]byte(r.text("vote")), &p); err != nil {
		return nil, err
	}
	v := signedvote.Vote{Origin: origin, ApprovalID: p.Approval, ActionDigest: p.Action, Vote: p.Vote}
	if p.Reason != nil {
		v.Reason = *p.Reason
	}
	if p.Code != nil {
		v.ReasonCode = *p.Code
	}
	a, err := signedvote.ParseAssertion(p.Signed)
	if err != nil {
		return nil, err
	}
	text, err := v.Text(a.Time)
	if err != nil {
		return nil, err
	}
	return map[string]any{"thumbprint": registered.PublicKey.Thumbprint()}, registered.Credential().Check(text, &a, at("voted_at"))
}

// arguments returns the exact form of arguments and the payload that records them.
func (r *reader) arguments() (map[string]any, error) {
	exact, err := jcs.Exact([]byte(r.text("arguments")), jcs.MaxDepth)
	if err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(exact, &members); err != nil {
		return nil, err
	}
	if _, own := members[jcs.TaggedMember]; own {
		return nil, errors.New("the arguments have a member of the guard's own")
	}
	jcs.TagMembers(members)
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	payload, err := jcs.Canonicalize(text, jcs.MaxDepth-1)
	if err == nil && string(jcs.UntagPayload(payload)) != string(exact) {
		r.err = fmt.Errorf("the payload %s is read as %s", payload, jcs.UntagPayload(payload))
	}
	return map[string]any{"exact": string(exact), "payload": string(payload)}, err
}
