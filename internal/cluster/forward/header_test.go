package forward_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// askRaw sends the head of a request unchanged, and returns the status of the response, or 0 if there is none.
func (n *node) askRaw(t *testing.T, head string) int {
	t.Helper()
	c, err := net.Dial("tcp", n.external.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, head); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// Headers that the passing node accepts are also accepted by the owner, in each form that a hop makes longer. Headers
// that are too large are rejected by both.
func TestHeadersNearTheBound(t *testing.T) {
	s := newService(t, 2, hello)
	const most = maxHeader + 4<<10 // package http adds that
	for _, form := range []struct{ name, begin, unit string }{
		{"one large header", "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Large: ", "y"},
		{"many small headers", "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-First: 1\r\n", "z:\r\n"},
		{"characters that are escaped", "GET /%s/", "|"},
	} {
		end := map[string]string{"z:\r\n": "\r\n", "y": "\r\n\r\n", "|": " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}[form.unit]
		taken, refused := 0, 0
		for size := most - 160; size <= most+160; size += 40 {
			for _, organization := range []string{"red", "blue"} {
				begin := strings.Replace(form.begin, "%s", organization, 1)
				head := begin + strings.Repeat(form.unit, (size-len(begin)-len(end))/len(form.unit)) + end
				owner, other := s.nodes[0], s.nodes[1]
				if organization == "blue" {
					owner, other = other, owner
				}
				want, got := owner.askRaw(t, head), other.askRaw(t, head)
				if got != want {
					t.Errorf("%s, %d bytes: got %d, want %d as at the owner", form.name, len(head), got, want)
				}
				switch want {
				case http.StatusOK:
					taken++
				case http.StatusRequestHeaderFieldsTooLarge:
					refused++
				}
			}
		}
		if taken == 0 || refused == 0 {
			t.Errorf("%s: %d heads were taken and %d refused, want some of each", form.name, taken, refused)
		}
	}
}
