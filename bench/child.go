package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/bench/peer"
)

// child is this program as a process of its own:
//
//	tessera DIR BATCH AGE   the peer behind net/http
//	floor                   the floor of the member on standard input
//	static                  what is on standard input, whatever is asked
//	idle DIR N              memory of the N organizations in DIR
func child(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 4 && args[0] == "tessera":
		return serveTessera(ctx, args[1], args[2], args[3], out)
	case len(args) == 1 && args[0] == "floor":
		var m peer.Member
		if err := json.NewDecoder(in).Decode(&m); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		h, err := peer.Floor(m)
		if err != nil {
			return err
		}
		return peer.Serve(ctx, out, h)
	case len(args) == 1 && args[0] == "static":
		body, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return peer.Serve(ctx, out, peer.Static(body))
	case len(args) == 3 && args[0] == "idle":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return weigh(ctx, args[1], n, out)
	}
	return fmt.Errorf("child: %q is none", args)
}

func serveTessera(ctx context.Context, dir, batch, age string, out io.Writer) error {
	var s peer.Settings
	size, err := strconv.ParseUint(batch, 10, 32)
	if err != nil {
		return err
	}
	s.Batch = uint(size)
	if s.Age, err = time.ParseDuration(age); err != nil {
		return err
	}
	t, err := peer.OpenTessera(context.WithoutCancel(ctx), dir, s)
	if err != nil {
		return err
	}
	return errors.Join(peer.Serve(ctx, out, t.Handler()), t.Close(context.WithoutCancel(ctx)))
}
