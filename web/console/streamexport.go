package console

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const streamExportPage = settingsPage + "/stream-export"

func (p *pages) streamExportScreens() []page.Screen {
	return []page.Screen{
		{Pattern: streamExportPage, Views: p.views, Name: "streamexport", Title: "Stream export",
			Show: p.showStreamExport, Forms: map[string]page.Form{"save": p.putStreamExport,
				"test": p.testStreamExport, "delete": p.deleteStreamExport}},
	}
}

// streamExportView is the content of the export's page.
type streamExportView struct {
	Export    wire.StreamExport
	Exists    bool
	Formats   []page.Option
	Encodings []page.Option
	MayManage bool
}

func (p *pages) showStreamExport(r *page.Request) (any, error) {
	v := streamExportView{Export: wire.StreamExport{Active: true, Format: "ocsf", Encoding: "protobuf"},
		MayManage: r.Person.May("manage"),
		Formats: []page.Option{{Value: "ocsf", Title: "OCSF API Activity"},
			{Value: "cloudevents", Title: "CloudEvents"}, {Value: "genai-1.41", Title: "Calls as spans (OpenTelemetry GenAI 1.41)"}},
		Encodings: []page.Option{{Value: "protobuf", Title: "protobuf"}, {Value: "json", Title: "JSON"}}}
	export, err := visitOf(r).Console.ShowStreamExport(r.Context(), visitOf(r).caller)
	if isMissing(err) {
		return v, nil
	}
	v.Export = export
	v.Exists = true
	return v, err
}

// putStreamExport replaces the export. The values of headers are never shown, so a form without headers keeps the
// existing ones.
func (p *pages) putStreamExport(r *page.Request) (page.Outcome, error) {
	wanted := api.NewStreamExport{URL: r.Value("url"), Format: streamexport.Format(r.Value("format")),
		Encoding: streamexport.Encoding(r.Value("encoding")), Payloads: r.Checked("payloads"),
		Active: new(r.Checked("active"))}
	headers, err := parseHeaders(r.Form.Get("header_secrets"))
	if err != nil {
		return page.Outcome{}, err
	}
	if len(headers) > 0 || r.Checked("no_headers") {
		wanted.Headers = headers
	}
	if wanted.From, err = parsePosition(r.Value("from")); err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	_, err = v.Console.PutStreamExport(r.Context(), v.caller, wanted)
	return page.GoTo(r.Address(streamExportPage), "saved"), err
}

// parsePosition parses where the export continues: after the latest event, at an index, or at its current position.
func parsePosition(from string) (jsontext.Value, error) {
	switch from {
	case "":
		return nil, nil
	case "now":
		return jsontext.Value(`"now"`), nil
	}
	at, err := strconv.ParseUint(from, 10, 53)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "The next event must be now or a log index: a whole number from 0", err)
	}
	return jsontext.Value(strconv.FormatUint(at, 10)), nil
}

// parseHeaders parses lines of the form "Name: value".
func parseHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if _, again := headers[name]; !found || name == "" || again {
			return nil, fault.New(fault.Invalid, "Write each header once, on its own line, as Name: value")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

func (p *pages) testStreamExport(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.TestStreamExport(r.Context(), v.caller)
	return page.GoTo(r.Address(streamExportPage), "stream-test-sent"), err
}

func (p *pages) deleteStreamExport(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.DeleteStreamExport(r.Context(), v.caller)
	return page.GoTo(r.Address(streamExportPage), "stream-export-deleted"), err
}
