package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// logView is the content of a log's home page.
type logView struct {
	Slug      id.Slug
	Prefix    string // of the log's transparency calls
	Tiles     string // prefix of the log's tiles
	PublicURL string
	Head      verify.Head
	Received  string // when the latest event was received; "" if there is none
	Recent    []recentView
	Key       string // signs the latest tree
	Keys      []keyView
	Witnesses []witnessView
	Quorum    string
	Cosigned  string // the latest checkpoint with its quorum, if it is not the head's
	Activity  *activity
	Checks    []page.Check
	Live      *page.Live
}

// recentView is one of the latest events.
type recentView struct {
	Index id.Index
	ID    id.Event
	URL   string
}

// renewLog is the interval, in seconds, at which the script of a home page reloads it. The answer is 304 until the log
// grows.
const renewLog = 2

// maxRecent is how many events a log's home page lists.
const maxRecent = 10

// keyView is a key of a log and the range of tree sizes that it signed.
type keyView struct{ Key, Sizes string }

type witnessView struct {
	Name, Key string
	Newest    *cosigned // nil if none is known
}

// showLog serves the home page of a log.
func (s *Server) showLog(r *request) (page.Answer, error) {
	if r.slug == "" {
		return page.Answer{}, errNotFound()
	}
	v, err := s.describeLog(r)
	if err != nil {
		return page.Answer{}, err
	}
	input, err := json.Marshal(v)
	if err != nil {
		return page.Answer{}, err
	}
	kept, ok := s.logs.Get(r.tenant)
	if ok && kept.input == string(input) {
		return kept.page, nil
	}
	v.Checks = listLogChecks()
	v.Live = &page.Live{Every: renewLog, News: fmt.Sprintf("Followed up to size %d.", v.Head.TreeSize)}
	if err := s.describeNewest(r, &v); err != nil {
		return page.Answer{}, err
	}
	received, err := s.readReceived(r, v.Head, kept)
	if err != nil {
		return page.Answer{}, err
	}
	v.Activity = newActivity(received.times)
	if err := s.describeCosignatures(r, &v); err != nil {
		return page.Answer{}, err
	}
	body, err := s.render(logPage, "Log "+string(r.slug), logScript, v)
	if err != nil {
		return page.Answer{}, err
	}
	made := page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}
	made.Tag = made.EntityTag()
	s.logs.Put(r.tenant, &keptLog{string(input), made, received})
	return made, nil
}

// keptLog is a log's home page and the values it was rendered from. The latest events need no entry, because the head
// determines them.
type keptLog struct {
	input    string
	page     page.Answer
	received received
}

// maxLogs is the maximum number of cached home pages, about 24 KiB each.
const maxLogs = 1024

// describeLog returns the content of the home page without the latest events.
func (s *Server) describeLog(r *request) (logView, error) {
	v := logView{Slug: r.slug, Prefix: s.transparencyURL(r.slug), PublicURL: s.kit.Public}
	var err error
	if v.Head, err = s.log.LogHead(r.Context(), r.tenant, r.slug); err != nil {
		return v, err
	}
	_, v.Tiles, _ = strings.Cut(string(v.Head.Origin), "/o/")
	keys, err := s.log.LogKeys(r.Context(), r.tenant)
	if err != nil {
		return v, err
	}
	for _, k := range keys {
		v.Keys = append(v.Keys, keyView{k.Key.String(), describeSizes(k)})
		if k.Signed(v.Head.TreeSize) {
			v.Key = k.Key.String()
		}
	}
	policy, err := s.log.LogPolicy(r.Context(), r.tenant)
	if err != nil {
		return v, err
	}
	v.Quorum = policy.Quorum
	for _, w := range policy.Witnesses {
		v.Witnesses = append(v.Witnesses, witnessView{Name: w.Name, Key: w.Key.String()})
	}
	if len(v.Witnesses) > 0 {
		note, err := s.log.LogCosigned(r.Context(), r.tenant)
		if err != nil {
			return v, err
		}
		if string(note) != v.Head.Checkpoint {
			v.Cosigned = string(note)
		}
	}
	return v, nil
}

// describeCosignatures adds the latest cosignature of each witness.
func (s *Server) describeCosignatures(r *request, v *logView) error {
	if len(v.Witnesses) == 0 {
		return nil
	}
	policy, err := s.log.LogPolicy(r.Context(), r.tenant)
	if err != nil {
		return err
	}
	keys, err := s.log.LogKeys(r.Context(), r.tenant)
	if err != nil {
		return err
	}
	newest, err := findCosignatures(policy, keys, v.Head.Checkpoint, v.Cosigned)
	for i := range v.Witnesses {
		if one, ok := newest[v.Witnesses[i].Key]; ok {
			v.Witnesses[i].Newest = &one
		}
	}
	return err
}

// describeNewest adds the latest events. The head of a damaged log may have none.
func (s *Server) describeNewest(r *request, v *logView) error {
	if v.Head.LatestPublishedAt == nil || v.Head.LatestLogIndex == nil {
		return nil
	}
	v.Received = v.Head.LatestPublishedAt.String()
	for at := *v.Head.LatestLogIndex; len(v.Recent) < maxRecent; at-- {
		name, err := s.log.EventAt(r.Context(), r.tenant, at)
		if err != nil {
			return err
		}
		v.Recent = append(v.Recent, recentView{at, name, s.eventURL(r.slug, string(name))})
		if at == 0 {
			break
		}
	}
	return nil
}

func describeSizes(k verify.LogKey) string {
	from := "from size " + strconv.FormatUint(uint64(k.From), 10)
	if k.To >= tlog.MaxSize {
		return from + " on"
	}
	return from + " to below " + strconv.FormatUint(uint64(k.To), 10)
}

// transparencyURL returns the path prefix of a log's transparency calls.
func (s *Server) transparencyURL(slug id.Slug) string {
	return s.kit.Base + "/v1/public/orgs/" + url.PathEscape(string(slug)) + "/transparency"
}

// logURL returns the path of a log's home page.
func (s *Server) logURL(slug id.Slug) string {
	return s.kit.Base + "/log/" + url.PathEscape(string(slug))
}

// listLogChecks returns the checks of a head in display order.
func listLogChecks() []page.Check {
	return []page.Check{
		{Name: "checkpoint", Title: "Checkpoint",
			Proves: "The log's key signed the size and root of this tree. The head agrees with it.",
			Limits: "Whose key it is. Compare the key with one that you got from another source."},
		{Name: "witnesses", Title: "Witnesses",
			Proves: "Enough witnesses of the log's policy have cosigned the checkpoint.",
			Limits: "That the witnesses are independent. This browser took the policy from the service at its first visit."},
		{Name: "consistency", Title: "Consistency", Proves: "The tree extends the one that this browser saw last.",
			Limits: "Anything about trees that this browser has not seen. A monitor compares each head."},
	}
}
