// Grants is the server of a tool that makes a refund only if people approved exactly this refund. Its argument is the key
// of the organization's grants, from transparency/keys.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/agentledger/agentledger/grant/granthttp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: grants VKEY")
		os.Exit(2)
	}
	handler, err := newServer(os.Args[1])
	if err == nil {
		err = http.ListenAndServe("127.0.0.1:8000", handler)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// newServer returns the tool behind its check.
func newServer(key string) (http.Handler, error) {
	checker, err := granthttp.New(granthttp.Config{
		Keys:   []string{key},
		Routes: []granthttp.Route{{Route: "POST /orders/{order_id}/refund", Tool: "shop.refund"}},
		Open:   []string{"GET *"},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{order_id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "order %s: delivered\n", r.PathValue("order_id"))
	})
	mux.HandleFunc("POST /orders/{order_id}/refund", func(w http.ResponseWriter, r *http.Request) {
		g, _ := granthttp.FromContext(r.Context())
		fmt.Fprintf(w, "order %s: refunded for %s by %s\n", r.PathValue("order_id"), g.Agent, g.Approval)
	})
	return checker.Wrap(mux), nil
}
