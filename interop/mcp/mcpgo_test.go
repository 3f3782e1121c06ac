package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// ownVariable makes this test's program a server that uses mcp-go.
const ownVariable = "OWN_SERVER"

// serveOwn serves a tool that adds, one that fails, a prompt and a resource.
func serveOwn() error {
	s := server.NewMCPServer("own", "1", server.WithToolCapabilities(false), server.WithPromptCapabilities(false),
		server.WithResourceCapabilities(false, false), server.WithInstructions("Add numbers."))
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Adds two numbers"), mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			a, errA := r.RequireFloat("a")
			b, errB := r.RequireFloat("b")
			if err := errors.Join(errA, errB); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultStructured(map[string]any{"sum": a + b}, fmt.Sprint(a+b)), nil
		})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("no funds")
	})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("A greeting", []mcp.PromptMessage{
			mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Hello "+r.Params.Arguments["name"]))}), nil
	})
	s.AddResource(mcp.NewResource("own://note", "note", mcp.WithMIMEType("text/plain")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "own://note", MIMEType: "text/plain", Text: "héllo"}}, nil
		})
	return server.ServeStdio(s)
}

// goCalls are the calls that runGoCaller makes, by kind of server. DIR is the folder of files.
var goCalls = map[string][][2]string{
	"everything": {
		{"echo", `{"message":"héllo\n\u2028"}`}, {"get-sum", `{"a":1.5,"b":2e3}`}, {"get-tiny-image", `{}`},
		{"get-structured-content", `{"location":"New York"}`}, {"get-resource-links", `{"count":2}`},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`}, {"get-sum", `{"a":"x"}`}, {"no-such-tool", `{}`},
	},
	"files": {
		{"write_file", `{"path":"DIR/a.txt","content":"one\n"}`}, {"read_text_file", `{"path":"DIR/a.txt"}`},
		{"read_text_file", `{"path":"/etc/hostname"}`}, {"list_directory", `{"path":"DIR"}`},
	},
	"memory": {
		{"create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote programs"]}]}`}, {"read_graph", `{}`},
	},
	"thinking": {
		{"sequentialthinking", `{"thought":"t","thoughtNumber":1,"totalThoughts":2,"nextThoughtNeeded":true}`},
		{"sequentialthinking", `{"thought":"t","thoughtNumber":"x","totalThoughts":2,"nextThoughtNeeded":true}`},
	},
	"own": {{"add", `{"a":1.5,"b":2e3}`}, {"fail", `{}`}, {"add", `{"a":"x"}`}, {"no-such-tool", `{}`}},
}

// runGoCaller asks a server for what it has, and calls its tools, through the client of mcp-go. It returns the answers.
func runGoCaller(t *testing.T, environment []string, kind, dir string, line ...string) (answers []string) {
	t.Helper()
	c, err := client.NewStdioMCPClient(line[0], environment, line[1:]...)
	must(t, err)
	defer c.Close()
	note := func(name string, answer any, err error) {
		if err != nil {
			answer = "error: " + err.Error()
		}
		text, err := json.Marshal(answer)
		must(t, err)
		answers = append(answers, name+" "+string(text))
	}
	ctx := t.Context()
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "caller", Version: "1"}
	begun, err := c.Initialize(ctx, hello)
	must(t, err)
	note("initialize", begun, nil)
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	note("tools", tools, err)
	prompts, err := c.ListPrompts(ctx, mcp.ListPromptsRequest{})
	note("prompts", prompts, err)
	if resources, err := c.ListResources(ctx, mcp.ListResourcesRequest{}); kind == "own" || err != nil {
		note("resources", resources, err)
	}
	templates, err := c.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
	note("templates", templates, err)
	for _, tool := range goCalls[kind] {
		call := mcp.CallToolRequest{}
		call.Params.Name = tool[0]
		must(t, json.Unmarshal([]byte(replaceFolder(tool[1], filepath.Join(dir, "files"))), &call.Params.Arguments))
		result, err := c.CallTool(ctx, call)
		note(tool[0], result, err)
	}
	return answers
}
