package frompage

// record contains the members of a record that verdicts use.
type record struct {
	origin, organizationID, eventID, agentID, keyID string
	sequenceNumber                                  uint64
	publicKey, eventDigest, form, signature         string
	declared                                        string
	intent                                          *string // nil: not the record of a result
}

// readRecord reads a text by the tables of "The record".
func readRecord(text string) (record, bool) {
	v, ok := readCanonical(text)
	always, sometimes := recordTable(), table{"on_behalf_of": oneOf("verified"), "traceparent": traceparent}.ifThere(v)
	if !ok || !always.holds(v) || !sometimes.holds(v) || len(v.object) != len(always)+len(sometimes) {
		return record{}, false
	}
	member := func(name string) string { return v.object[name].text }
	return record{
		origin:         member("origin"),
		organizationID: member("organization_id"),
		eventID:        member("event_id"),
		agentID:        member("agent_id"),
		keyID:          member("key_id"),
		sequenceNumber: uint64(v.object["sequence_num"].number),
		publicKey:      member("public_key"),
		eventDigest:    member("event_digest"),
		form:           member("sig_form"),
		signature:      member("sig_value_b64"),
		declared:       v.object["policy"].object["declared"].text,
		intent:         textIfThere(v.object["policy"].object["intent"]),
	}, true
}

// recordTable is the first table of "The record", without the members that may be absent.
func recordTable() table {
	return table{
		"v":               one,
		"origin":          anyText,
		"organization_id": lowerUUID,
		"sequence_num":    positive,
		"event_id":        anyText,
		"agent_id":        anyText,
		"key_id":          anyText,
		"public_key":      anyText,
		"signer":          oneOf("agent", "bridge", "system"),
		"custody":         oneOf("agent", "server"),
		"event_digest":    hash,
		"sig_form":        oneOf("digest", "canonical"),
		"sig_value_b64":   anyText,
		"ingest_key_id":   nullOr(someText),
		"received_at":     timeWithMillis,
		"policy":          policy,
	}
}

// policy implements the second table of "The record": its members and no others, of which only intent may be absent.
// The table also requires that limits is not null if a policy was evaluated.
func policy(v value) bool {
	always := table{
		"evaluated":      boolean,
		"declared":       decision(),
		"effective":      decision(),
		"policy_id":      nullOr(someText),
		"policy_version": nullOr(positive),
		"policy_digest":  nullOr(someHash),
		"rule_id":        nullOr(someText),
		"engine":         nullOr(someText),
		"input_digest":   nullOr(someHash),
		"evaluated_at":   nullOr(someTime),
		"limits":         limits,
		"approval_id":    nullOr(someText),
	}
	intent := table{"intent": someText}.ifThere(v)
	return always.holds(v) && intent.holds(v) && len(v.object) == len(always)+len(intent) &&
		!(v.object["evaluated"].boolean && v.object["limits"].kind == isNull)
}

// decision reports whether a value is one of the three decisions of a policy.
func decision() func(value) bool { return oneOf("allow", "allow_with_obligation", "deny") }
