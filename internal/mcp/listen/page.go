package listen

import "net/http"

// pageHeaders are the request headers that a web page may set beside those that browsers allow anyway.
const pageHeaders = "Authorization, Content-Type, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-Id"

// answerPage lets an allowed web page read the answers (CORS). It answers the question that a browser asks before a
// request, and reports whether the request was one. A browser sends that question without the page's credentials.
func (h *Handler) answerPage(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", sessionHeader)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	allowed := pageHeaders
	if h.Principal != "" {
		allowed += ", " + h.Principal
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	header.Set("Access-Control-Allow-Headers", allowed)
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" { // the page is on a public address
		header.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
