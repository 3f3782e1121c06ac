package policy

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Tally is the record of one claim: the amount in the counter for the window before the event, and
// the amount that the event adds.
type Tally struct {
	LimitID       string
	Before, Added decimal.Decimal
}

// AppendTallies appends the `limits` of a record in RFC 8785 form: an array of {added, before,
// limit_id} in the order of the claims, both amounts as strings.
func AppendTallies(b []byte, all []Tally) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(all[i].Added.Append(append(b, `{"added":"`...)), '"')
		b = append(all[i].Before.Append(append(b, `,"before":"`...)), '"')
		b = append(jcs.AppendString(append(b, `,"limit_id":`...), all[i].LimitID), '}')
	}
	return append(b, ']')
}

// ParseTallies parses the `limits` of a record. It returns nil for null and an empty text.
func ParseTallies(limits []byte) ([]Tally, error) {
	var documents []struct {
		Added   jsontext.Value `json:"added"`
		Before  jsontext.Value `json:"before"`
		LimitID string         `json:"limit_id"`
	}
	if len(limits) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(limits, &documents, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalidMember("limits", "must be an array of added, before and limit_id")
	}
	var all []Tally
	for _, d := range documents {
		added, ok := parseDecimal(d.Added)
		before, ok2 := parseDecimal(d.Before)
		if !ok || !ok2 {
			return nil, invalidMember("limits", "must have decimals as amounts")
		}
		all = append(all, Tally{d.LimitID, before, added})
	}
	return all, nil
}
