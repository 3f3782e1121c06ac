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
	Name      string // of the organization
	Prefix    string // of the log's transparency calls
	Tiles     string // prefix of the log's tiles
	PublicURL string
	BadgeURL  string // with the host
	Head      verify.Head
	Key       string // signs the latest tree
	Keys      []keyView
	Witnesses []witnessView
	Quorum    string
	Cosigned  string // the latest checkpoint with its quorum, if it is not the head's
	Latest    bool   // the page has the latest entries
	Entries   *entriesView
	Drawings  []*drawing
	First     id.Index // entry of the first square
	Checks    []page.Check
	Live      *page.Live
}

// renewLog is the interval, in seconds, at which the script of a home page reloads it. The answer is 304 until the log
// grows.
const renewLog = 2

// keyView is a key of a log and the range of tree sizes that it signed.
type keyView struct{ Key, ID, Sizes string }

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
	before, err := readBefore(r, v.Head.TreeSize)
	if err != nil {
		return page.Answer{}, err
	}
	input, err := json.Marshal(v)
	if err != nil {
		return page.Answer{}, err
	}
	v.Latest = before == v.Head.TreeSize
	if kept, ok := s.logs.Get(r.tenant); v.Latest && ok && kept.input == string(input) {
		return kept.page, nil
	}
	v.Checks = listLogChecks()
	if v.Latest {
		v.Live = &page.Live{Every: renewLog, News: fmt.Sprintf("Followed up to size %d.", v.Head.TreeSize)}
	}
	if err := s.addEntries(r, &v, before); err != nil {
		return page.Answer{}, err
	}
	if err := s.describeCosignatures(r, &v); err != nil {
		return page.Answer{}, err
	}
	body, err := s.render(logPage, v.Name+": public log", logScript, v)
	if err != nil {
		return page.Answer{}, err
	}
	made := page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}
	made.Tag = made.EntityTag()
	if v.Latest && (v.Entries.Outcomes || s.options.Acts == nil) {
		s.logs.Put(r.tenant, &keptLog{string(input), made})
	}
	return made, nil
}

// keptLog is a log's home page and the values it was rendered from. The entries need none, because the head determines
// them.
type keptLog struct {
	input string
	page  page.Answer
}

// maxLogs is the maximum number of cached home pages, about 60 KiB each.
const maxLogs = 1024

// describeLog returns the content of the home page without the latest events.
func (s *Server) describeLog(r *request) (logView, error) {
	v := logView{Slug: r.slug, Prefix: s.transparencyURL(r.slug), PublicURL: s.kit.Public}
	v.BadgeURL = s.kit.Public + strings.TrimPrefix(s.logURL(r.slug), s.kit.Base) + "/badge"
	var err error
	if v.Name, err = s.nameOrganization(r); err != nil {
		return v, err
	}
	if v.Head, err = s.log.LogHead(r.Context(), r.tenant, r.slug); err != nil {
		return v, err
	}
	_, v.Tiles, _ = strings.Cut(string(v.Head.Origin), "/o/")
	keys, err := s.log.LogKeys(r.Context(), r.tenant)
	if err != nil {
		return v, err
	}
	for _, k := range keys {
		v.Keys = append(v.Keys, keyView{k.Key.String(), k.Key.Hash().String(), describeSizes(k)})
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

// addEntries adds the entries below an index, and the drawing of the latest tree. The head of a damaged log has none.
func (s *Server) addEntries(r *request, v *logView, before id.Index) error {
	size := v.Head.TreeSize
	v.Entries = &entriesView{Outcomes: true}
	var leaves map[id.Index]*leaf
	if v.Head.LatestLogIndex != nil {
		listed, err := s.readEntries(r, before)
		if err != nil {
			return err
		}
		if v.Entries, err = s.describeEntries(r, listed); err != nil {
			return err
		}
		latest := listed
		if !v.Latest {
			if latest, err = s.readEntries(r, size); err != nil {
				return err
			}
		}
		leaves = s.drawEntries(r, latest)
	}
	v.Entries.addPages(s.logURL(r.slug), before, size)
	if v.Drawings = drawTrees(size, v.Head.RootHash, nil, leaves); v.Drawings != nil {
		v.First = v.Drawings[0].Squares[0].Begin
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
