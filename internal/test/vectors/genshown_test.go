package vectors

import (
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// spelled are valid bundles in other spellings, and with members that do not matter.
func (m *maker) spelled(good in) {
	text := good["bundle"].(string)
	for name, c := range ordered(map[string][2]string{
		"log_index with a fraction of zero":   {`"log_index":4`, `"log_index":4.0`},
		"log_index with an exponent":          {`"log_index":4`, `"log_index":0.4e1`},
		"member name with an escape":          {`"version"`, `"v\u0065rsion"`},
		"verification is a text":              {`{`, `{"verification":"x",`},
		"operator_statement is a list":        {`{`, `{"operator_statement":[1],`},
		"optional members null":               {`{`, `{"erased_at":null,"directory":null,"verification":null,"operator_statement":null,`},
		"64 levels":                           {`{`, `{"later":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,`},
		"organization_slug of any characters": {`"org"`, `" \u0007é"`},
	}) {
		m.bundle(name, good.with("bundle", strings.Replace(text, c[0], c[1], 1)), "++++++")
	}
}

// shown are bundles that show more or less than their disclosure says.
func (m *maker) shown(l *ledger, bundleIn func(*verify.Bundle) in) {
	show := func(name, signs string, index int, f func(b *verify.Bundle)) {
		b := l.bundle(index, 7, id.DiscloseFull)
		f(b)
		m.bundle(name, bundleIn(b), signs)
	}
	at := start
	show("more shown than the disclosure says", "++++++", 4, func(b *verify.Bundle) { b.Disclosure = id.DiscloseCommitment })
	show("envelope without its record", "+++000", 4, func(b *verify.Bundle) { b.Record, b.Disclosure = nil, id.DiscloseCommitment })
	show("envelope without its record, which is promised", "+++-00", 4, func(b *verify.Bundle) { b.Record = nil })
	show("erased_at beside the envelope", "++++++", 4, func(b *verify.Bundle) { b.ErasedAt = &at })
	show("form canonical, envelope erased", "++++00", 5, func(b *verify.Bundle) { b.Envelope, b.ErasedAt = nil, &at })
	show("form canonical, envelope with a space", "++++0-", 5, func(b *verify.Bundle) { text := strings.Replace(*b.Envelope, ":", ": ", 1); b.Envelope = &text })
}
