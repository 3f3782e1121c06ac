package policy_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

const refunds = `{
  "policy_id": "pol_refunds",
  "name": "Refunds",
  "version": 3,
  "default": "deny",
  "rules": [
    {"rule_id": "read", "tool": "acme.**", "decision": "allow"},
    {"rule_id": "big-refund", "tool": "acme.pay.refund", "agents": ["agt_1", "agt_2"],
     "decision": "allow_with_obligation", "reason": "Ask \u00e9lan", "priority": 10, "mode": "enforce",
     "obligations": [{"type": "human_approval", "approvals": 2}]},
    {"rule_id": "trial", "tool": "*.pay.*", "decision": "deny", "mode": "shadow", "priority": -5}
  ]
}`

func parse(t testing.TB, doc string) policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse(t *testing.T) {
	want := policy.Policy{
		ID: "pol_refunds", Name: "Refunds", Version: 3, Default: id.Deny,
		Rules: []policy.Rule{
			{ID: "read", Tool: "acme.**", Decision: id.Allow, Mode: policy.Enforce, OnError: policy.SkipOnError},
			{
				ID: "big-refund", Tool: "acme.pay.refund", Agents: []id.Agent{"agt_1", "agt_2"},
				Decision: id.AllowWithObligation, Reason: "Ask élan", Priority: 10, Mode: policy.Enforce, OnError: policy.MatchOnError,
				Obligations: []policy.Obligation{{Type: policy.HumanApproval, Approvals: 2, TTLSeconds: 3600}},
			},
			{ID: "trial", Tool: "*.pay.*", Decision: id.Deny, Mode: policy.Shadow, Priority: -5, OnError: policy.MatchOnError},
		},
	}
	if got := parse(t, refunds); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseDefaults(t *testing.T) {
	got := parse(t, `{"name":"n"}`)
	want := policy.Policy{Name: "n", Default: id.Allow, Rules: []policy.Rule{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := policy.Compile(got); !fault.Is(err, fault.Invalid) {
		t.Errorf("a policy without an id compiles: %v", err)
	}
}

// withRule returns a policy document whose only rule has additional members.
func withRule(more string) string {
	return `{"name":"n","rules":[{"rule_id":"r","tool":"a","decision":"allow_with_obligation"` + more + `}]}`
}

func TestParseTreatsNullAsAbsent(t *testing.T) {
	want := parse(t, withRule(``))
	for _, more := range []string{
		`"when":null`, `"requires":null`, `"requires":[ ]`, `"limit":null`, `"on_error":null`,
		`"on_error":"match"`, `"agents":null`, `"agents":[]`, `"obligations":null`, `"obligations":[]`,
		`"mode":null`, `"mode":"enforce"`, `"reason":null`, `"reason":""`, `"priority":null`, `"priority":0`,
	} {
		got, err := policy.Parse([]byte(withRule("," + more)))
		if err != nil {
			t.Errorf("%s: %v", more, err)
			continue
		}
		if !bytes.Equal(got.Canonical(), want.Canonical()) {
			t.Errorf("%s: got %s, want %s", more, got.Canonical(), want.Canonical())
		}
	}
	for _, doc := range []string{`{"name":"n","tests":[]}`, `{"name":"n","tests":null,"rules":null,"default":null}`} {
		if _, err := policy.Parse([]byte(doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	rule := func(members string) string { return `{"name":"n","rules":[{` + members + `}]}` }
	obligation := func(o string) string { return withRule(`,"obligations":[` + o + `]`) }
	limit := func(l string) string { return withRule(`,"limit":{` + l + `}`) }
	for name, tc := range map[string]struct{ doc, member string }{
		"nothing":                 {``, "valid JSON"},
		"byte order mark":         {"\ufeff" + `{"name":"n"}`, "valid JSON"},
		"something after":         {`{"name":"n"}{}`, "valid JSON"},
		"not UTF-8":               {"{\"name\":\"\xff\"}", "valid JSON"},
		"lone surrogate":          {`{"name":"\ud800"}`, "valid JSON"},
		"an array":                {`[]`, "JSON object"},
		"null":                    {`null`, "name"},
		"member given twice":      {`{"name":"n","name":"m"}`, "name"},
		"twice by an escape":      {`{"name":"n","n\u0061me":"m"}`, "name"},
		"unknown member":          {`{"name":"n","extra":1}`, "extra"},
		"member in capitals":      {`{"Name":"n"}`, "Name"},
		"unknown rule member":     {withRule(`,"wen":null`), "rules[0].wen"},
		"unknown obl. member":     {obligation(`{"type":"human_approval","quorum":1}`), "rules[0].obligations[0].quorum"},
		"test without a tool":     {`{"name":"n","tests":[{"expect":{"decision":"deny"}}]}`, "tests[0].input.tool_name"},
		"test expects nothing":    {`{"name":"n","tests":[{"input":{"tool_name":"a"}}]}`, "tests[0].expect.decision"},
		"test of another limit":   {`{"name":"n","tests":[{"input":{"tool_name":"a"},"limits":{"x":1},"expect":{"decision":"deny"}}]}`, "tests[0].limits"},
		"test's payload a list":   {`{"name":"n","tests":[{"input":{"tool_name":"a","payload":[]},"expect":{"decision":"deny"}}]}`, "tests[0].input.payload"},
		"test's number not exact": {`{"name":"n","tests":[{"input":{"tool_name":"a","payload":{"n":9007199254740993}},"expect":{"decision":"deny"}}]}`, "tests[0].input.payload"},
		"test's agent":            {`{"name":"n","tests":[{"input":{"tool_name":"a","agent_id":"a b"},"expect":{"decision":"deny"}}]}`, "tests[0].input.agent_id"},
		"test's member":           {`{"name":"n","tests":[{"input":{"tool_name":"a"},"want":"deny"}]}`, "tests[0].want"},
		"when of no sense":        {withRule(`,"when":"payload.x >"`), "rules[0].when does not compile"},
		"when of a string":        {withRule(`,"when":"'a'"`), "rules[0].when is of type string"},
		"when of another name":    {withRule(`,"when":"hidden.x == 1"`), "rules[0].when does not compile"},
		"when of mixed types":     {withRule(`,"when":"tool_name > 1"`), "rules[0].when does not compile"},
		"when with a macro":       {withRule(`,"when":"payload.x.exists(y, y == 1)"`), "rules[0].when does not compile"},
		"when with all":           {withRule(`,"when":"[1].all(x, x == 1)"`), "rules[0].when does not compile"},
		"when with map":           {withRule(`,"when":"[1].map(x, x) == [1]"`), "rules[0].when does not compile"},
		"when with dyn":           {withRule(`,"when":"dyn(1) == 1"`), "rules[0].when does not compile"},
		"when with a message":     {withRule(`,"when":"google.protobuf.Int32Value{value: 1} == 1"`), "rules[0].when uses a message"},
		"when with inner names":   {withRule(`,"when":"@and(true, true)"`), "rules[0].when does not compile"},
		"when with its pattern":   {withRule(`,"when":"tool_name.matches(payload.p)"`), "rules[0].when matches with a pattern that is not a literal"},
		"when with a named zone":  {withRule(`,"when":"now.getHours('Europe/Berlin') < 8"`), "rules[0].when uses getHours"},
		"when with a read zone":   {withRule(`,"when":"now.getHours(payload.zone) < 8"`), "rules[0].when uses getHours"},
		"when with whole numbers": {withRule(`,"when":"payload.x + 1 > 2"`), "rules[0].when calculates with a whole number"},
		"when costs too much":     {withRule(`,"when":"payload.a.matches('(a|b){0,200}c')"`), "rules[0].when costs too much"},
		"when too long":           {withRule(`,"when":"true` + strings.Repeat(" ", 2048) + `"`), "rules[0].when"},
		"when too deep":           {withRule(`,"when":"` + strings.Repeat("!(", 100) + "true" + strings.Repeat(")", 100) + `"`), "rules[0].when does not compile"},
		"when with computed name": {withRule(`,"when":"payload[payload.key] == 1.0"`), "rules[0].when looks up a member"},
		"empty when":              {withRule(`,"when":""`), "rules[0].when must not be empty"},
		"requires no path":        {withRule(`,"requires":["a..b"]`), "rules[0].requires[0]"},
		"requires a place":        {withRule(`,"requires":["[0]"]`), "rules[0].requires[0]"},
		"requires 65":             {withRule(`,"requires":["a"` + strings.Repeat(`,"a"`, 64) + `]`), "rules[0].requires"},
		"on_error skip":           {withRule(`,"on_error":"skip"`), "rules[0].on_error must be match"},
		"on_error unknown":        {withRule(`,"on_error":"ignore"`), "rules[0].on_error"},
		"limit empty":             {withRule(`,"limit":{}`), "rules[0].limit.max"},
		"limit without an id":     {limit(`"count":true,"by":"tool","window_seconds":60,"max":1`), "rules[0].limit.limit_id"},
		"limit of nothing":        {limit(`"limit_id":"l","by":"tool","window_seconds":60,"max":1`), "rules[0].limit must have either"},
		"limit of both":           {limit(`"limit_id":"l","count":true,"sum":"a","by":"tool","window_seconds":60,"max":1`), "rules[0].limit must have either"},
		"limit of no path":        {limit(`"limit_id":"l","sum":"a b","by":"tool","window_seconds":60,"max":1`), "rules[0].limit.sum"},
		"limit by nobody":         {limit(`"limit_id":"l","count":true,"window_seconds":60,"max":1`), "rules[0].limit.by"},
		"limit without a window":  {limit(`"limit_id":"l","count":true,"by":"tool","max":1`), "rules[0].limit.window_seconds"},
		"limit of two years":      {limit(`"limit_id":"l","count":true,"by":"tool","window_seconds":63072000,"max":1`), "rules[0].limit.window_seconds"},
		"limit below zero":        {limit(`"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":-1`), "rules[0].limit.max"},
		"limit too large":         {limit(`"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":1e20`), "rules[0].limit.max"},
		"limit's words":           {limit(`"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":"many"`), "rules[0].limit.max"},
		"limit's currency":        {limit(`"limit_id":"l","sum":"a","by":"tool","window_seconds":60,"max":1,"currency":"usd"`), "rules[0].limit.currency"},
		"currency of a count":     {limit(`"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":1,"currency":"USD"`), "rules[0].limit.currency"},
		"limit of an allow":       {rule(`"rule_id":"r","tool":"a","decision":"allow","limit":{"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":1}`), "rules[0].limit needs the decision"},
		"limit_id used twice":     {rule(`"rule_id":"r","tool":"a","decision":"deny","limit":{"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":1}},{"rule_id":"s","tool":"b","decision":"deny","limit":{"limit_id":"l","count":true,"by":"tool","window_seconds":60,"max":1}`), "rules[1].limit.limit_id"},
		"no name":                 {`{}`, "name"},
		"control in name":         {`{"name":"a\u0007"}`, "name"},
		"name too long":           {`{"name":"` + strings.Repeat("é", 257) + `"}`, "name"},
		"name is a number":        {`{"name":1}`, "name"},
		"reserved policy_id":      {`{"name":"n","policy_id":"none"}`, "policy_id"},
		"policy_id with a space":  {`{"name":"n","policy_id":"a b"}`, "policy_id"},
		"policy_id too long":      {`{"name":"n","policy_id":"` + strings.Repeat("a", 129) + `"}`, "policy_id"},
		"version negative":        {`{"name":"n","version":-1}`, "version"},
		"version a fraction":      {`{"name":"n","version":1.5}`, "version"},
		"version not exact":       {`{"name":"n","policy_id":"p","version":9007199254740992}`, "version"},
		"default unknown":         {`{"name":"n","default":"maybe"}`, "default"},
		"default in capitals":     {`{"name":"n","default":"Deny"}`, "default"},
		"rules an object":         {`{"name":"n","rules":{}}`, "rules"},
		"rule null":               {`{"name":"n","rules":[null]}`, "rules[0].rule_id"},
		"501 rules":               {`{"name":"n","rules":[` + strings.Repeat(`{},`, 500) + `{}]}`, "rules"},
		"no rule_id":              {rule(`"tool":"a","decision":"deny"`), "rules[0].rule_id"},
		"reserved rule_id":        {rule(`"rule_id":"default","tool":"a","decision":"deny"`), "rules[0].rule_id"},
		"rule_id with a slash":    {rule(`"rule_id":"a/b","tool":"a","decision":"deny"`), "rules[0].rule_id"},
		"rule_id used twice":      {rule(`"rule_id":"r","tool":"a","decision":"deny"},{"rule_id":"r","tool":"b","decision":"deny"`), "rules[1].rule_id"},
		"no tool":                 {rule(`"rule_id":"r","decision":"deny"`), "rules[0].tool"},
		"tool null":               {rule(`"rule_id":"r","tool":null,"decision":"deny"`), "rules[0].tool"},
		"tool with empty segment": {rule(`"rule_id":"r","tool":"a..b","decision":"deny"`), "rules[0].tool"},
		"tool with last dot":      {rule(`"rule_id":"r","tool":"a.","decision":"deny"`), "rules[0].tool"},
		"star inside a segment":   {rule(`"rule_id":"r","tool":"a.b*","decision":"deny"`), "rules[0].tool"},
		"two stars not at end":    {rule(`"rule_id":"r","tool":"a.**.b","decision":"deny"`), "rules[0].tool"},
		"three stars":             {rule(`"rule_id":"r","tool":"***","decision":"deny"`), "rules[0].tool"},
		"tool too long":           {rule(`"rule_id":"r","tool":"` + strings.Repeat("a", 257) + `","decision":"deny"`), "rules[0].tool"},
		"no decision":             {rule(`"rule_id":"r","tool":"a"`), "rules[0].decision"},
		"decision null":           {rule(`"rule_id":"r","tool":"a","decision":null`), "rules[0].decision"},
		"decision unknown":        {rule(`"rule_id":"r","tool":"a","decision":"secret-value"`), "rules[0].decision"},
		"agent malformed":         {withRule(`,"agents":["agt_1","secret value"]`), "rules[0].agents[1]"},
		"agent glob":              {withRule(`,"agents":["agt_*"]`), "rules[0].agents[0]"},
		"agents a string":         {withRule(`,"agents":"agt_1"`), "rules[0].agents"},
		"reason with line feed":   {withRule(`,"reason":"a\nb"`), "rules[0].reason"},
		"reason too long":         {withRule(`,"reason":"` + strings.Repeat("x", 1025) + `"`), "rules[0].reason"},
		"priority a string":       {withRule(`,"priority":"1"`), "rules[0].priority"},
		"priority a fraction":     {withRule(`,"priority":0.5`), "rules[0].priority"},
		"priority too high":       {withRule(`,"priority":1000001`), "rules[0].priority"},
		"priority beyond 64 bits": {withRule(`,"priority":99999999999999999999`), "rules[0].priority"},
		"mode unknown":            {withRule(`,"mode":"off"`), "rules[0].mode"},
		"mode empty":              {withRule(`,"mode":""`), "rules[0].mode"},
		"obligation unknown":      {obligation(`{"type":"watermark"}`), "rules[0].obligations[0].type"},
		"obligation null":         {obligation(`null`), "rules[0].obligations[0].type"},
		"obligation twice":        {obligation(`{"type":"human_approval"},{"type":"human_approval"}`), "rules[0].obligations"},
		"no approvals":            {obligation(`{"type":"human_approval","approvals":0}`), "rules[0].obligations[0].approvals"},
		"101 approvals":           {obligation(`{"type":"human_approval","approvals":101}`), "rules[0].obligations[0].approvals"},
		"no time to live":         {obligation(`{"type":"human_approval","ttl_seconds":0}`), "rules[0].obligations[0].ttl_seconds"},
		"longer than 7 days":      {obligation(`{"type":"human_approval","ttl_seconds":604801}`), "rules[0].obligations[0].ttl_seconds"},
		"reminded at once":        {obligation(`{"type":"human_approval","remind_after_seconds":0}`), "rules[0].obligations[0].remind_after_seconds"},
		"reminded at the end":     {obligation(`{"type":"human_approval","ttl_seconds":60,"remind_after_seconds":60}`), "rules[0].obligations[0].remind_after_seconds"},
		"escalates to nobody":     {obligation(`{"type":"human_approval","escalate_after_seconds":60}`), "rules[0].obligations[0].escalate_to"},
		"escalates never":         {obligation(`{"type":"human_approval","escalate_to":"owner"}`), "rules[0].obligations[0].escalate_to"},
		"escalates at once":       {obligation(`{"type":"human_approval","escalate_after_seconds":0,"escalate_to":"owner"}`), "rules[0].obligations[0].escalate_after_seconds"},
		"escalates too late":      {obligation(`{"type":"human_approval","escalate_after_seconds":3600,"escalate_to":"owner"}`), "rules[0].obligations[0].escalate_after_seconds"},
		"escalates to members":    {obligation(`{"type":"human_approval","escalate_after_seconds":60,"escalate_to":"member"}`), "rules[0].obligations[0].escalate_to"},
		"obligation with deny":    {rule(`"rule_id":"r","tool":"a","decision":"deny","obligations":[{"type":"human_approval"}]`), "rules[0].obligations"},
		"obligation with allow":   {rule(`"rule_id":"r","tool":"a","decision":"allow","obligations":[{"type":"human_approval"}]`), "rules[0].obligations"},
		"on_error of an allow":    {rule(`"rule_id":"r","tool":"a","decision":"allow","on_error":"match"`), "rules[0].on_error"},
	} {
		_, err := policy.Parse([]byte(tc.doc))
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want an Invalid fault", name, err)
			continue
		}
		message := fault.Of(err).Message
		if !strings.Contains(message, tc.member) || strings.Contains(message, "secret") {
			t.Errorf("%s: got %q, want it to name %q and no value", name, message, tc.member)
		}
	}
}

func TestParseRefusesTooLarge(t *testing.T) {
	doc := bytes.Repeat([]byte{' '}, policy.MaxBytes+1)
	if _, err := policy.Parse(doc); !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v, want TooLarge", err)
	}
}

func TestParseTruncatesForeignNames(t *testing.T) {
	doc := fmt.Sprintf(`{"name":"n","%s":1}`, strings.Repeat("é", 1000))
	_, err := policy.Parse([]byte(doc))
	message := fault.Of(err).Message
	if len(message) > 120 || strings.ContainsFunc(message, func(r rune) bool { return r > '~' }) {
		t.Errorf("got %q, want a short message in ASCII", message)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(refunds))
	f.Add([]byte(`{"name":"n"}`))
	f.Add([]byte(withRule(`,"on_error":"match","requires":[],"when":null`)))
	f.Add([]byte(withRule(`,"obligations":[{"type":"human_approval","ttl_seconds":1}]`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := policy.Parse(doc)
		if err != nil {
			if k := fault.Of(err).Kind; k != fault.Invalid && k != fault.TooLarge {
				t.Fatalf("kind %d: %v", k, err)
			}
			return
		}
		again, err := policy.Parse(p.Canonical())
		if err != nil {
			t.Fatalf("%s does not parse: %v", p.Canonical(), err)
		}
		if !bytes.Equal(again.Canonical(), p.Canonical()) || again.Digest() != p.Digest() {
			t.Errorf("got %s, want %s", again.Canonical(), p.Canonical())
		}
		p.ID, p.Version = "p", 1
		if _, err := policy.Compile(p); err != nil {
			t.Errorf("parses and does not compile: %v", err)
		}
	})
}
