package approval

import (
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/text/currency"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// Shown is a value of a column of the organization, in words for people.
type Shown struct {
	Path   string // of the column
	Label  string // such as "order"; "" if Text says what it is
	Text   string // such as "A-1009", or "640.00 USD"
	Amount bool   // an amount of money
}

// Shown returns the values of columns that the payload has, in the order of the columns. Values are exact: an amount only
// gets the decimal places of its currency if it has fewer. The currency is the end of the column's name: amount_usd.
func (a *Approval) Shown(columns []org.Column) []Shown { return shownOf(a.Payload, columns) }

func shownOf(payload []byte, columns []org.Column) (all []Shown) {
	if len(payload) == 0 || len(columns) == 0 {
		return nil
	}
	payload = jcs.UntagPayload(payload)
	for _, c := range columns {
		value, reason := index.ReadValue(payload, c.Path)
		if reason == "" {
			shown := showValue(c.Path, value)
			shown.Path = c.Path
			all = append(all, shown)
		}
	}
	return all
}

// showValue returns a number or a text of canonical JSON in words.
func showValue(path string, value []byte) Shown {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return Shown{Label: labelOf(path), Text: text}
	}
	number := string(value)
	at := strings.LastIndexAny(path, "_.")
	unit, err := currency.ParseISO(path[at+1:])
	exact, ok := jcs.ParseNumber(number)
	if at < 0 || err != nil || !ok || strings.ContainsAny(exact.String(), "eE") {
		return Shown{Label: labelOf(path), Text: number}
	}
	number = exact.String()
	places, _ := currency.Standard.Rounding(unit)
	_, fraction, _ := strings.Cut(number, ".")
	if missing := places - len(fraction); missing > 0 {
		if fraction == "" {
			number += "."
		}
		number += strings.Repeat("0", missing)
	}
	return Shown{Text: number + " " + unit.String(), Amount: true}
}

// labelOf returns the name of a column in words: order_id and order.id are an order.
func labelOf(path string) string {
	for _, end := range []string{"_id", ".id"} {
		path = strings.TrimSuffix(path, end)
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(path)
}
