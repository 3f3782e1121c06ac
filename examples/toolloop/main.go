// Toolloop is an agent with tools: a model chooses a tool, the guard runs the call if policy and approvers allow it, and the
// result returns to the model. It can be killed at any moment and restarted: no call is made twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/examples/agent"
	"github.com/agentledger/agentledger/id"
)

func main() {
	ticket := flag.String("ticket", "ticket-1", "the conversation: the same one goes on where it was")
	journal := flag.String("journal", "toolloop-journal", "folder of the agent's memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runConversation(ctx, *ticket, *journal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runConversation(ctx context.Context, ticket, journal string) error {
	actions, err := agent.Guard(ctx, journal, "acme.customers.delete")
	if err != nil {
		return err
	}
	defer actions.Journal.Close()
	answer, err := callToolsUntilAnswer(ctx, actions, ticket)
	if err != nil {
		return err
	}
	fmt.Println("answer:", answer)
	return actions.Flush(ctx)
}

// callToolsUntilAnswer lets the model call tools until it has an answer. An error other
// than a denial ends it, because the call's permission or result is unknown then. A
// restart with the same ticket continues.
func callToolsUntilAnswer(ctx context.Context, actions *guard.Guard, ticket string) (string, error) {
	var seen []observation
	for {
		call, answer := nextToolCall(seen)
		if call == nil {
			return answer, nil
		}
		ran, err := actions.Run(ctx, guard.Action{
			Key: fmt.Sprintf("%s/%d", ticket, len(seen)), Trace: id.Trace(ticket),
			Tool: call.tool, Payload: call.arguments,
		}, func(ctx context.Context, p guard.Permit) (any, error) {
			return tools[call.tool](ctx, call.arguments, p.Grant)
		})
		o := observation{call.tool, string(ran.Result)}
		var denied *client.DeniedError
		var failed *guard.FailedError
		switch {
		case errors.As(err, &denied):
			o.result = "denied: " + denied.Reason // the model may try something else
		case errors.As(err, &failed):
			o.result = "failed: " + failed.Failure
		case err != nil:
			return "", err
		}
		fmt.Printf("%-22s %s\n", o.tool, o.result)
		seen = append(seen, o)
	}
}
