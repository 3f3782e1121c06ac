package webhook

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// SafeTool returns the name of a tool for a message of the service, or "(on the page)" if programs for mail or chat would
// turn the name into a link: it has a scheme, a domain name with a path or port, an address, or the form of a public domain
// name. An agent chooses the name.
func SafeTool(tool string) string {
	lower := strings.ToLower(tool)
	parts := strings.FieldsFunc(lower, func(r rune) bool { return r == '/' || r == ':' })
	linked := strings.Contains(lower, "//") || strings.HasPrefix(lower, "mailto:")
	for _, part := range parts {
		if strings.Contains(part, ".") {
			_, err := netip.ParseAddr(part)
			linked = linked || len(part) < len(lower) || err == nil || strings.HasPrefix(part, "www.") || isDomain(part)
		}
	}
	if linked {
		return "(on the page)"
	}
	return tool
}

// isDomain reports whether a name ends like a domain name: with a code of a country or one of the oldest endings. The newer ones
// are ordinary words, such as read, open, email and pay, in which many names of tools end.
func isDomain(name string) bool {
	suffix, icann := publicsuffix.PublicSuffix(name)
	last := suffix[strings.LastIndexByte(suffix, '.')+1:]
	known := icann || strings.Contains(suffix, ".") // an ending that is only a word is not in the list
	return known && (len(last) == 2 || slices.Contains([]string{"com", "net", "org", "info", "biz", "edu", "gov"}, last))
}
