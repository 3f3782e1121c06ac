package console

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

const actsPage = "/console/acts"

// actView is the content of an act's page.
type actView struct {
	wire.Act
	AgentName    page.Name
	Declared     string
	Story        []storyLine
	Values       []actValue    // of the payload
	More         bool          // the payload has more values than the page shows
	Envelope     *page.Payload // nil if it is erased or the reader may not see it
	Record       *page.Payload
	HidesIt      bool // the reader's role may not see envelopes
	Needed       string
	Newer, Older string // in the view that the reader comes from
	ListURL      string // of that view; "" if the reader comes from elsewhere
	PolicyURL    string // of the version that decided

	PublicURL    string       // of the event
	PublicQuery  template.URL // its query, which selects a former log; encoded
	Transparency string       // path of the log's public calls
	Origin       id.Origin
	DataURL      string
	EventURL     string
	LogQuery     string
	Checks       []page.Check
}

// storyLine is one thing that happened.
type storyLine struct {
	At                  id.Instant
	State               string // class of the line: is-wait, is-bad, is-good or ""
	Who                 page.Name
	Words, Object, Then string // a sentence: Words, Object in bold, and Then
	Quote               string // what a person or a rule said; "" if nothing
	URL, Link           string // where to read more; "" if nowhere
}

// Clock returns the time of the line in UTC.
func (l storyLine) Clock() string { return l.At.Time().UTC().Format("15:04:05") }

// actValue is a value of the payload with the acts that have it.
type actValue struct {
	page.Member
	URL string // "" if they cannot be searched for
}

func (p *pages) showAct(r *page.Request) (any, error) {
	name := r.PathParameter("act")
	found, err := visitOf(r).Console.ShowAct(r.Context(), visitOf(r).caller, name, r.ListQuery("log"))
	if err != nil {
		return nil, err
	}
	event, err := visitOf(r).Console.ShowEvent(r.Context(), visitOf(r).caller, string(found.ID), r.ListQuery("log"))
	if err != nil {
		return nil, err
	}
	v := &actView{Act: found, AgentName: agentName(r, &found), Declared: event.Declared, Record: page.NewDocument("record", []byte(event.Record)),
		HidesIt: event.Envelope == nil && event.ErasedAt == 0, LogQuery: logQuery(r), Checks: page.EventChecks()}
	v.PublicURL = r.Address("/v1/public/orgs", string(r.Person.Organization.Slug), "verify", string(v.ID))
	v.Transparency = r.Address("/v1/public/orgs", string(r.Person.Organization.Slug), "transparency")
	if log := r.Query("log"); log != "" {
		v.PublicQuery = template.URL(url.Values{"origin": {log}}.Encode())
	}
	if event.Bundle != nil {
		v.Origin = event.Bundle.Origin
	}
	v.DataURL, v.EventURL = r.Address(actCalls, string(v.ID))+v.LogQuery, r.Address("/console/events", string(v.ID))+v.LogQuery
	if v.Policy != "" && v.Act.Version > 0 {
		v.PolicyURL = r.Address("/console/policies", string(v.Policy)) + "?" + url.Values{"version": {fmt.Sprint(v.Act.Version)}}.Encode()
	}
	s, err := readSearch(r)
	if err != nil {
		return nil, err
	}
	if event.Envelope != nil {
		v.Envelope = page.NewDocument("envelope", []byte(*event.Envelope))
		v.readValues(r, s, *event.Envelope)
	}
	if err := v.tell(r); err != nil {
		return nil, err
	}
	r.Title = v.addValues(v.title(), s.Columns)
	return v, v.link(r, s)
}

// readValues reads the payload, with a search for each value.
func (v *actView) readValues(r *page.Request, s *search, envelope string) {
	var signed struct {
		Payload jsontext.Value `json:"payload"`
	}
	_ = json.Unmarshal([]byte(envelope), &signed) // shown unchanged
	payload := page.NewPayload(signed.Payload)
	if payload == nil {
		return
	}
	v.More = payload.More
	for _, m := range payload.Members {
		value := actValue{Member: m}
		line := searchLine{Terms: []term{{Key: "tool", Value: string(v.Tool)}}}
		switch path := pathText(m.Path); {
		case m.Cut || len(m.Value) > maxFiltered || m.Kind != "text" && m.Kind != "number":
		case slices.Contains(s.Columns, path):
			line.Terms = append(line.Terms, term{Key: path, Operator: "=", Value: m.Value})
			value.URL = searchURL(r, line)
		case m.Kind == "text" && len(m.Value) > 2:
			line.Words = m.Value
			value.URL = searchURL(r, line)
		}
		v.Values = append(v.Values, value)
	}
}

// maxFiltered is the length of the longest value that acts are searched for, in bytes.
const maxFiltered = 128

// pathText returns a path as policies and columns write it.
func pathText(path []page.Step) string {
	var b strings.Builder
	for i, step := range path {
		switch {
		case step.Index:
			b.WriteString("[" + step.Name + "]")
		case i > 0:
			b.WriteString("." + step.Name)
		default:
			b.WriteString(step.Name)
		}
	}
	return b.String()
}

// tell tells what happened, in order.
func (v *actView) tell(r *page.Request) error {
	asked := storyLine{At: v.ReceivedAt, Who: v.AgentName, Words: "asked to run", Object: string(v.Tool)}
	if v.Result == nil && v.Approval == "" && v.Outcome == "done" {
		asked.Words = "recorded a call of"
	}
	v.Story = append(v.Story, asked)
	if err := v.tellDecision(r); err != nil {
		return err
	}
	if v.Result == nil {
		return nil
	}
	result, err := visitOf(r).Console.ShowEvent(r.Context(), visitOf(r).caller, string(v.Result.ID), r.ListQuery("log"))
	if isMissing(err) {
		return nil
	}
	ended := storyLine{At: result.ReceivedAt, Who: v.AgentName, Words: "recorded that it did not happen", Link: "Result",
		URL: r.Address("/console/events", string(v.Result.ID)) + v.LogQuery}
	switch v.Outcome {
	case "done":
		ended.Words, ended.State = "recorded that it is done", "is-good"
	case "failed":
		ended.Words, ended.State = "recorded that it failed", "is-bad"
	case "unknown":
		ended.Words = "recorded a result that is not known"
	}
	v.Story = append(v.Story, ended)
	if err == nil && result.Envelope != nil {
		v.tellReceipt(result.ReceivedAt, *result.Envelope)
	}
	return err
}

// maxToolName is the size in bytes of the longest name of a key.
const maxToolName = 255

// tellReceipt tells what the receipt of a tool in the result says, and what the service found when the result was recorded.
func (v *actView) tellReceipt(at id.Instant, envelope string) {
	e, err := event.Parse([]byte(envelope), event.Options{MaxBytes: len(envelope), Server: true})
	if err != nil {
		return
	}
	note, err := tlog.ParseNote([]byte(verify.FindToolReceipt(e)))
	if err != nil || len(note.Signatures[0].Name) > maxToolName {
		return
	}
	said, err := grant.ParseReceipt(note)
	if err != nil {
		return
	}
	line := storyLine{At: at, Words: "The result has a receipt in the name of", Object: note.Signatures[0].Name,
		Then: fmt.Sprintf("with status %d at %s. It is not checked here: that needs the tool's key and aps verify.", said.Status, said.At)}
	switch {
	case v.Result.ConfirmedBy != "":
		line.State, line.Words, line.Object = "is-good", "Confirmed by", v.Result.ConfirmedBy
		line.Then = fmt.Sprintf("with status %d at %s", said.Status, said.At)
		if said.Approval == "" {
			line.Then = fmt.Sprintf("with status %d at %s. It checked no grant", said.Status, said.At)
		}
		if said.Status >= 400 {
			line.State = "is-bad"
		}
	case v.Result.Receipt == "wrong":
		line.State, line.Then = "is-bad", "which is not a receipt of this act."
	}
	v.Story = append(v.Story, line)
}

// tellDecision tells how policy and approvers decided.
func (v *actView) tellDecision(r *page.Request) error {
	decided := storyLine{At: v.ReceivedAt, Words: "The policy", URL: v.PolicyURL, Link: "Policy"}
	if v.Rule != "" && v.Rule != "default" {
		decided.Words, decided.Object = "Rule", string(v.Rule)
	}
	switch {
	case v.Policy == "":
		return nil
	case v.Policy == policy.None:
		decided = storyLine{At: v.ReceivedAt, Words: "No policy was active, so the call was allowed"}
	case v.Decision == id.Deny:
		decided.Then, decided.State = "denied it", "is-bad"
	case v.Decision == id.Allow:
		decided.Then = "allowed it"
	default:
		decided.Then, decided.State = "required an approval", "is-wait"
	}
	if v.Approval == "" {
		v.Story = append(v.Story, decided)
		return nil
	}
	about, err := visitOf(r).Console.ShowApproval(r.Context(), visitOf(r).caller, string(v.Approval))
	if isMissing(err) {
		v.Story = append(v.Story, decided)
		return nil
	}
	if err != nil {
		return err
	}
	if decided.Quote = policy.WrittenReason(about.Policy.Rule, about.Policy.Reason); about.Quorum > 1 {
		decided.Then = fmt.Sprintf("required %d approvals", about.Quorum)
	}
	v.Story = append(v.Story, decided)
	return v.tellVotes(r, &about)
}

func (v *actView) tellVotes(r *page.Request, about *wire.ApprovalDetail) error {
	people, err := readNames(r)
	if err != nil {
		return err
	}
	yes, no := 0, 0
	for _, vote := range about.Votes {
		line := storyLine{At: vote.At, Who: nameOf(r, page.NamedPerson, vote.Account), Quote: vote.Comment, State: "is-good", Words: "approved"}
		if people[vote.Account] == "" {
			line.Who = page.Name{Text: cmp.Or(vote.Email, vote.Account), ID: vote.Account}
		}
		if vote.DeputyFor != "" {
			line.Who.Text += " for " + nameOf(r, page.NamedPerson, vote.DeputyFor).Text
		}
		if yes++; vote.Vote != "approve" {
			yes, no = yes-1, no+1
			line.State, line.Words = "is-bad", "refused"
		}
		line.Words += " after " + spanWords(vote.At.Time().Sub(about.CreatedAt.Time()))
		v.Story = append(v.Story, line)
	}
	v.Needed = fmt.Sprintf("%d needed, %d approved, %d refused", about.Quorum, yes, no)
	end := storyLine{At: id.Instant(about.EndedAt)}
	switch about.Status {
	case "pending":
		end = storyLine{At: about.CreatedAt, State: "is-wait", Words: "It waits for votes", URL: r.Address("/console/approvals", string(v.Approval)), Link: "Approval"}
		if left := leftWords(about.ExpiresAt, time.Now()); left != "" {
			end.Words += ", " + left + " left"
		}
	case "expired":
		end.Words = "The approval expired"
	case "cancelled":
		end.Words = "The agent withdrew its request"
	case "revoked":
		end.Words, end.State = "A member revoked the approval", "is-bad"
	case "invalidated":
		end.Words = "The approval became invalid, because another policy took over"
	}
	if end.Words != "" && end.At != 0 {
		v.Story = append(v.Story, end)
	}
	return nil
}

// spanWords returns a length of time in words.
func spanWords(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// title says what became of the act.
func (v *actView) title() string {
	who := ""
	for _, l := range v.Story {
		if strings.HasPrefix(l.Words, "approved after") && v.Outcome != "refused" || strings.HasPrefix(l.Words, "refused after") {
			who = l.Who.Text
		}
	}
	tool := string(v.Tool)
	title := v.AgentName.Text + " ran " + tool
	switch {
	case v.Outcome == "refused":
		title = cmp.Or(who, "A person") + " refused " + tool
	case v.Outcome == "denied" && v.Decision != id.Deny:
		title = "The agent says that " + tool + " was denied"
	case v.Outcome == "denied":
		title = "The policy denied " + tool
	case v.Outcome == "failed":
		title = tool + " failed"
	case v.Outcome == "expired":
		title = "The approval expired before " + tool + " was run"
	case v.Outcome == "cancelled":
		title = tool + " was cancelled"
	case v.Outcome == "waiting":
		title = tool + " waits for an approval"
	case v.Outcome == "unknown":
		title = "The result of " + tool + " is unknown"
	case who != "":
		title = who + " approved " + tool
	case v.Outcome == "open":
		title = v.AgentName.Text + " asked to run " + tool
	}
	return title
}

// addValues returns the title with the values of the first columns.
func (v *actView) addValues(title string, columns []string) string {
	shown := 0
	for _, path := range columns {
		c := newCell(&v.Act, path)
		if c.Text == "" || len(c.Text) > maxTitled || shown == shownHeads {
			continue
		}
		if shown++; shown == 1 {
			title += ":"
		} else {
			title += ","
		}
		title += " " + path + " " + c.Text
	}
	return title
}

// maxTitled is the length of the longest value in a title, in bytes.
const maxTitled = 40

// link adds the neighbours of the act in the view that the reader comes from.
func (v *actView) link(r *page.Request, s *search) error {
	if s.Text == "" || s.Line.Words != "" || len(s.Problems) > 0 {
		return nil
	}
	v.ListURL = searchURL(r, s.Line)
	for order, address := range map[string]*string{"oldest": &v.Newer, "newest": &v.Older} {
		query := url.Values{"limit": {"1"}, "order": {order}, "after": {strconv.FormatUint(uint64(v.Index), 10)}}
		for name, values := range s.query {
			query[name] = values
		}
		found, err := visitOf(r).Console.ListActs(r.Context(), visitOf(r).caller, query)
		if err = r.Correctable(err); err != nil {
			return err
		}
		if r.Problem = ""; len(found.Acts) > 0 {
			shown := url.Values{"q": {s.Text}}
			if log := r.Query("log"); log != "" {
				shown.Set("log", log)
			}
			*address = r.Address(actsPage, string(found.Acts[0].ID)) + "?" + shown.Encode()
		}
	}
	return nil
}
