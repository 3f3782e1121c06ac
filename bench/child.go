package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// child runs this program as a separate process:
//
//	tessera DIR BATCH AGE INTERVAL   the peer behind net/http
//	floor                            the floor of the member on standard input
//	static                           answers every request with its standard input
func child(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 5 && args[0] == "tessera":
		return serveTessera(ctx, args[1], args[2:], out)
	case len(args) == 1 && args[0] == "floor":
		var m peerMember
		if err := json.NewDecoder(in).Decode(&m); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		h, err := peerFloor(m)
		if err != nil {
			return err
		}
		return servePeer(ctx, out, h)
	case len(args) == 1 && args[0] == "static":
		body, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return servePeer(ctx, out, staticPeer(body))
	}
	return fmt.Errorf("child: %q is none", args)
}

// serveTessera serves the peer with the given batch size, age and interval.
func serveTessera(ctx context.Context, dir string, settings []string, out io.Writer) error {
	size, err := strconv.ParseUint(settings[0], 10, 32)
	age, wrongAge := time.ParseDuration(settings[1])
	interval, wrongInterval := time.ParseDuration(settings[2])
	if err := errors.Join(err, wrongAge, wrongInterval); err != nil {
		return err
	}
	s := peerSettings{Batch: uint(size), Age: age, Checkpoint: interval}
	t, err := openTessera(context.WithoutCancel(ctx), dir, s)
	if err != nil {
		return err
	}
	defer t.Abandon()
	return servePeer(ctx, out, t.Handler())
}
