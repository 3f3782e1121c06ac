package vectors

import (
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

const toolName = "did:web:payments.example"

// toolReceipts makes receipts of a tool in the event of a result.
func toolReceipts(m *maker) {
	m.t.Helper()
	signer := func(name, seed string) tlog.SignerKey {
		s, err := tlog.NewSignerKey(name, key(m.t, seed))
		if err != nil {
			m.t.Fatal(err)
		}
		return s
	}
	tool, next, other := signer(toolName, "tool"), signer(toolName, "next key of the tool"), signer("did:web:mail.example", "another tool")
	call := map[string]any{"phase": "intent", "call_id": "call_1", "salt": "AAECAwQFBgcICQoLDA0ODw", "order_id": "A-1009", "amount_usd": 1.5, "é": "ö"}
	nonce := grant.Nonce{1, 2, 3}
	state := map[string]any{"phase": "result", "call_id": "call_1", "status": "ok", "approval_id": "apr_1", "grant_nonce": hex.EncodeToString(nonce[:])}
	unapproved := map[string]any{"phase": "result", "call_id": "call_1", "status": "ok"}
	// logged returns the envelopes of an intent and of its result.
	logged := func(intent, result map[string]any, receipt any) (texts [2]string) {
		l := emptyLedger(m, 3)
		for i, payload := range []map[string]any{intent, maps.Clone(result)} {
			if i == 1 && receipt != nil {
				payload["receipt"] = receipt
			}
			l.add(forgery{unsigned: func(e map[string]any) { e["tool_name"], e["payload"] = "shop.refund", payload }})
			texts[i] = string(l.events[i].envelope)
		}
		return texts
	}
	intent := func(payload map[string]any) *event.Envelope {
		text := logged(payload, unapproved, nil)[0]
		e, err := event.Parse([]byte(text), event.Options{MaxBytes: len(text), Server: true})
		if err != nil {
			m.t.Fatal(err)
		}
		return e
	}
	e := intent(call)
	right := grant.Receipt{Organization: e.OrganizationID, Agent: e.AgentID, Tool: e.Tool,
		ActionDigest: actionOf(e), Approval: "apr_1", Nonce: nonce, Status: 200, At: start + 1123}
	with := func(change func(*grant.Receipt)) grant.Receipt {
		r := right
		change(&r)
		return r
	}
	bare := with(func(r *grant.Receipt) { r.Approval, r.Nonce, r.Intent = "", grant.Nonce{}, e.EventID })
	note := func(text string, by ...tlog.SignerKey) string {
		n, err := by[0].SignNote(text)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, k := range by[1:] {
			more, err := k.SignNote(text)
			if err == nil {
				n, err = n.Add(more.Signatures...)
			}
			if err != nil {
				m.t.Fatal(err)
			}
		}
		return string(n.Bytes())
	}
	input := func(result map[string]any, receipt any, keys ...tlog.SignerKey) in {
		texts, vkeys := logged(call, result, receipt), []any{}
		for _, k := range keys {
			vkeys = append(vkeys, k.Verifier().String())
		}
		return in{"intent": texts[0], "result": texts[1], "tool_keys": vkeys}
	}
	accept := func(name string, i in, status int) {
		m.accept(name, i, map[string]any{"by": toolName, "status": strconv.Itoa(status), "at": right.At.String(), "approval_id": "apr_1"})
	}
	signed := note(right.Text(), tool)
	accept("an approved act", input(state, signed, tool), 200)
	m.accept("an act without an approval", input(unapproved, note(bare.Text(), tool), tool),
		map[string]any{"by": toolName, "status": "200", "at": right.At.String(), "approval_id": ""})
	const subject = `{"issuer":"https://login.example","subject":"al\"ice"}`
	behalf := func(i in) in {
		i["intent"] = strings.Replace(i["intent"].(string), `"organization_id"`, `"on_behalf_of":`+subject+`,"organization_id"`, 1)
		return i
	}
	accept("an approved act on behalf of a subject", behalf(input(state, signed, tool)), 200)
	m.accept("an act on behalf of a subject without an approval", behalf(input(unapproved, note(bare.Text(), tool), tool)),
		map[string]any{"by": toolName, "status": "200", "at": right.At.String(), "approval_id": ""})
	action := grant.ActionOf(e)
	action.OnBehalfOf = []byte(subject)
	m.refuse("the digest of the action with its subject",
		behalf(input(state, note(with(func(r *grant.Receipt) { r.ActionDigest = action.Digest() }).Text(), tool), tool)))
	upper := input(state, signed, tool)
	for _, name := range []string{"intent", "result"} {
		text := upper[name].(string)
		upper[name] = strings.Replace(text, e.OrganizationID.String(), strings.ToUpper(e.OrganizationID.String()), 1)
	}
	accept("an organization in upper case", upper, 200)
	accept("an act that the tool failed", input(state, note(with(func(r *grant.Receipt) { r.Status = 503 }).Text(), tool), tool), 503)
	accept("keys of several tools", input(state, signed, other, next, tool), 200)
	accept("signatures of several keys", input(state, note(right.Text(), other, next, tool), tool), 200)
	_, line, _ := strings.Cut(note(bare.Text(), other), "\n\n")
	accept("a wrong signature by another tool", input(state, signed+line, tool), 200)
	for _, c := range []struct {
		name string
		grant.Receipt
	}{
		{"another organization", with(func(r *grant.Receipt) { r.Organization[0]++ })},
		{"another agent", with(func(r *grant.Receipt) { r.Agent = "agt_2" })},
		{"another tool name", with(func(r *grant.Receipt) { r.Tool = "shop.order" })},
		{"another approval", with(func(r *grant.Receipt) { r.Approval = "apr_2" })},
		{"another nonce", with(func(r *grant.Receipt) { r.Nonce[0]++ })},
		{"an act without its approval", bare},
		{"another act", with(func(r *grant.Receipt) { r.ActionDigest[31]++ })},
		{"the same arguments with another salt", with(func(r *grant.Receipt) { r.ActionDigest = actionOf(intent(salted(call))) })},
		{"the arguments without the guard's own", with(func(r *grant.Receipt) { r.ActionDigest = actionOf(intent(argumentsOf(call))) })},
	} {
		m.refuse(c.name, input(state, note(c.Text(), tool), tool))
	}
	for _, other := range []string{"evt_other", strings.ToUpper(string(e.EventID))} {
		b := bare
		b.Intent = id.Event(other)
		m.refuse("an act without an approval: another intent "+other, input(unapproved, note(b.Text(), tool), tool))
	}
	m.refuse("an act without an approval: no intent", input(unapproved, note(strings.Replace(bare.Text(), "\n"+string(e.EventID)+"\n", "\n-\n", 1), tool), tool))
	resalted := bare
	resalted.ActionDigest = actionOf(intent(salted(call)))
	m.refuse("an act without an approval: another salt", input(unapproved, note(resalted.Text(), tool), tool))
	m.refuse("an approval that the result does not name", input(unapproved, signed, tool))
	nonceless := maps.Clone(state)
	delete(nonceless, "grant_nonce")
	m.refuse("a nonce that the result does not name", input(nonceless, signed, tool))
	numbered := maps.Clone(state)
	numbered["approval_id"] = 1
	m.refuse("an approval that is no text", input(numbered, signed, tool))
	m.refuse("no receipt", input(state, nil, tool))
	m.refuse("a receipt that is no text", input(state, map[string]any{"note": signed}, tool))
	m.refuse("a receipt of another kind", input(state, "R-1009", tool))
	m.refuse("another version", input(state, note(strings.Replace(right.Text(), "/v1\n", "/v2\n", 1), tool), tool))
	m.refuse("no key", input(state, signed))
	m.refuse("the key of another tool", input(state, signed, other))
	m.refuse("another key of the same name", input(state, signed, next))
	m.refuse("the signature of another text", input(state, swapSignatures(signed, note(bare.Text(), tool)), tool))
	m.refuse("a changed status", input(state, strings.Replace(signed, "\n200\n", "\n201\n", 1), tool))
	m.refuse("no signature", input(state, right.Text()+"\n", tool))
	m.refuse("a line more", input(state, note(right.Text()+"more\n", tool), tool))
	m.refuse("a line missing", input(state, note(strings.Replace(right.Text(), "200\n", "", 1), tool), tool))
	m.refuse("a status below 200", input(state, note(with(func(r *grant.Receipt) { r.Status = 199 }).Text(), tool), tool))
	m.refuse("a status above 599", input(state, note(with(func(r *grant.Receipt) { r.Status = 600 }).Text(), tool), tool))
	m.refuse("a digest in upper case", input(state, note(strings.Replace(right.Text(), right.ActionDigest.String(), strings.ToUpper(right.ActionDigest.String()), 1), tool), tool))
	m.refuse("a day that does not exist", input(state, note(strings.Replace(right.Text(), right.At.String(), "2026-02-30T12:00:00.000Z", 1), tool), tool))
	m.refuse("a white space at the end", input(state, signed+" ", tool))
}

// swapSignatures returns the text of a note with the signatures of another.
func swapSignatures(text, signatures string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	_, signatures, _ = strings.Cut(signatures, "\n\n")
	return text + "\n\n" + signatures
}

func actionOf(e *event.Envelope) id.Hash {
	return grant.ActionOf(e).WithoutSubject().Digest()
}

func salted(call map[string]any) map[string]any {
	call = maps.Clone(call)
	call["salt"] = "AQECAwQFBgcICQoLDA0ODw"
	return call
}

func argumentsOf(call map[string]any) map[string]any {
	call = maps.Clone(call)
	for _, name := range []string{"phase", "call_id", "salt"} {
		delete(call, name)
	}
	return call
}

// checkToolReceipt checks a vector of kind tool-receipt.
func (r *reader) checkToolReceipt() (map[string]any, error) {
	read := func(name string) *event.Envelope {
		text := r.text(name)
		e, err := event.Parse([]byte(text), event.Options{MaxBytes: len(text), Server: true})
		if err == nil && string(e.Canonical) != text {
			err = errRefused
		}
		if err != nil {
			r.err = err
			return &event.Envelope{}
		}
		return e
	}
	var keys []tlog.VerifierKey
	texts, err := r.v.List("tool_keys")
	r.err = err
	for _, text := range texts {
		k, err := tlog.ParseVerifierKey(text)
		if err != nil {
			r.err = err
		}
		keys = append(keys, k)
	}
	intent := read("intent")
	c, err := verify.ConfirmAct(read("result"), intent.EventID, actionOf(intent), keys)
	if err != nil {
		return nil, err
	}
	return map[string]any{"by": c.By, "status": strconv.Itoa(c.Status), "at": c.At.String(), "approval_id": c.Approval}, nil
}
