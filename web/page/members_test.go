package page

import (
	"strings"
	"testing"
)

// rows returns the table of a payload, one line for each member.
func (p *Payload) rows() string {
	var b strings.Builder
	for _, m := range p.Members {
		for _, step := range m.Path {
			b.WriteString("/" + step.Name)
		}
		b.WriteString(" " + m.Kind + " " + m.Value + "\n")
	}
	return b.String()
}

// Readers see the numbers of a tagged payload, and tags of any other payload as they are.
func TestExactNumbersAreShown(t *testing.T) {
	const tagged = `{"$tagged":true,"id":{"$number":"1915883588174806058"},"o":{"$object":{"$number":"5"}}}`
	const rows = "/id number 1915883588174806058\n/o/$number text 5\n"
	const plain = `{"id":{"$number":"1915883588174806058"}}`

	p := NewPayload([]byte(tagged))
	if p.rows() != rows || strings.Join(strings.Fields(p.Raw), "") != `{"id":1915883588174806058,"o":{"$number":"5"}}` {
		t.Errorf("got %s and %s", p.rows(), p.Raw)
	}
	if p = NewPayload([]byte(plain)); p.rows() != "/id/$number text 1915883588174806058\n" || !strings.Contains(p.Raw, "$number") {
		t.Errorf("not tagged: got %s and %s", p.rows(), p.Raw)
	}

	p = NewDocument("envelope", []byte(`{"agent_id":"a","payload":`+tagged+`,"x":{"payload":`+tagged+`}}`))
	want := "/agent_id text a\n" + strings.ReplaceAll("\n"+rows, "\n/", "\n/payload/")[1:] +
		"/x/payload/$tagged true or false true\n/x/payload/id/$number text 1915883588174806058\n/x/payload/o/$object/$number text 5\n"
	if p.rows() != want || p.Of != "envelope" {
		t.Errorf("envelope: got %s, want %s", p.rows(), want)
	}
	if signed := strings.Join(strings.Fields(p.Raw), ""); !strings.Contains(signed, `"payload":`+tagged) {
		t.Errorf("envelope: the signed text is %s", signed)
	}
	if p := NewDocument("record", nil); p != nil {
		t.Errorf("no text: got %+v", p)
	}
	if p := NewDocument("record", []byte("{")); p == nil || p.Raw != "{" {
		t.Errorf("no JSON: got %+v", p)
	}
}
