package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/agentledger/agentledger/internal/wire/issued"
)

// startChild runs this program as a separate process (child), which reads its input as JSON:
//
//	tessera   the peer behind net/http (tesseraInput)
//	floor     the floor of an organization (issued.CreatedOrganization)
//	static    answers every request with the same bytes ([]byte)
func startChild(name string, input any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "child", name)
	cmd.Stdin = bytes.NewReader(text)
	return start(cmd)
}

// tesseraInput is a new log of the peer.
type tesseraInput struct {
	Dir      string
	Settings peerSettings
}

func child(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	input := json.NewDecoder(in)
	var h http.Handler
	var err error
	switch name := strings.Join(args, " "); name {
	case "tessera":
		var p tesseraInput
		if err = input.Decode(&p); err != nil {
			break
		}
		var t *tesseraPeer
		if t, err = openTessera(context.WithoutCancel(ctx), p.Dir, p.Settings); err == nil {
			defer t.close()
			h = t.Handler()
		}
	case "floor":
		var o issued.CreatedOrganization
		if err = input.Decode(&o); err == nil {
			h, err = peerFloor(o)
		}
	case "static":
		var body []byte
		err = input.Decode(&body)
		h = staticPeer(body)
	default:
		err = fmt.Errorf("there is no child %q", name)
	}
	if err != nil {
		return fmt.Errorf("child: %w", err)
	}
	return servePeer(ctx, out, h)
}
