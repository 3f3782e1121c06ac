package notify

import (
	"regexp"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// address matches what mail programs turn into links, in a text by foldDots: schemes, domain names, paths and e-mail
// addresses. Marks and joiners count as letters, because a name may contain them next to a dot.
var address = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[/\\@]|:\S|` + part + `\.` + part + `|^\s*(?i:www|http|https|mailto)\b`)
})

const part = `[\p{L}\p{M}\p{N}\p{Pc}\p{Pd}\x{200c}\x{200d}]`

// foldDots replaces the characters that programs read as a dot, slash, colon or at sign by that character.
var foldDots = strings.NewReplacer("。", ".", "．", ".", "｡", ".", "․", ".", "／", "/", "⁄", "/", "∕", "/", "＼", "\\",
	"：", ":", "∶", ":", "ː", ":", "＠", "@", "﹫", "@")

// OrganizationName returns the name of an organization for a mail. If the name could be taken for a link, or contains
// characters that are not allowed in names, it returns the slug: an owner chooses the name, and a mail to a stranger
// must not contain the owner's words.
func OrganizationName(o org.Summary) string {
	if address().MatchString(foldDots.Replace(o.Name)) || !textcheck.Name(o.Name, 1, 200) {
		return string(o.Slug)
	}
	return o.Name
}
