package approval

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	saltLen = 16
	sumLen  = 8 // of each keyed hash

	accountPrefix = "acc_" // of account IDs

	// maxNames bounds the names of one hidden principal. An ordinary principal of 256 characters has about a hundred at
	// most.
	maxNames = 2048
)

// Hidden replaces an erased principal. It contains a salted hash of each e-mail address and account ID that the
// principal may mention, and none of the text. The zero Hidden mentions no account.
type Hidden struct {
	Salt []byte `json:"salt,omitempty"`
	Sums []byte `json:"sums,omitempty"` // sumLen bytes for each name
	All  bool   `json:"all,omitzero"`   // the principal may mention more than maxNames names
}

// Hide returns the hidden form of a principal. It mentions every account that the principal mentions. If the principal
// may mention more than maxNames names, the hidden form mentions every account.
func Hide(text string) Hidden {
	h := Hidden{Salt: make([]byte, saltLen)}
	_, _ = rand.Read(h.Salt) // never fails
	seen := map[string]bool{}
	for name := range names(text) {
		if seen[name] {
			continue
		}
		if len(seen) == maxNames {
			return Hidden{All: true}
		}
		seen[name] = true
		h.Sums = append(h.Sums, h.sum(name)...)
	}
	if len(h.Sums) == 0 {
		return Hidden{}
	}
	return h
}

// mentions reports whether the principal mentioned a name of an account (see [mentions]).
func (h *Hidden) Mentions(name string) bool {
	name = foldText(name)
	if name == "" || h.All {
		return name != ""
	}
	sum := h.sum(name)
	for rest := h.Sums; len(rest) >= sumLen; rest = rest[sumLen:] {
		if bytes.Equal(rest[:sumLen], sum) {
			return true
		}
	}
	return false
}

func (h *Hidden) sum(name string) []byte {
	mac := hmac.New(sha256.New, h.Salt)
	mac.Write([]byte(name))
	return mac.Sum(nil)[:sumLen]
}

// forms returns the texts in which the name of an account is searched.
func forms(principal string) (all []string) {
	texts := []string{principal}
	if unescaped, err := url.PathUnescape(principal); err == nil && unescaped != principal {
		texts = append(texts, unescaped)
	}
	for _, text := range texts {
		text = foldText(text)
		all = append(all, text, withoutSpace(text))
	}
	return all
}

// names yields each part of a principal that can be the folded name of an account: an e-mail address or an account
// ID. It yields some more than once.
func names(principal string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, text := range forms(principal) {
			if !yieldNames(text, yield) {
				return
			}
		}
	}
}

func yieldNames(text string, yield func(string) bool) bool {
	before := rune(0)
	for start, r := range text {
		begins := !isAddressRune(before)
		before = r
		if !begins {
			continue
		}
		rest := text[start:]
		if strings.HasPrefix(rest, accountPrefix) {
			end := strings.IndexFunc(rest, isNoIDRune)
			if end < 0 {
				end = len(rest)
			}
			if !continuesAddress(rest[end:]) && !yield(rest[:end]) {
				return false
			}
		}
		at := strings.IndexByte(rest, '@')
		if at < 0 {
			continue
		}
		for end := at + 1; end <= len(rest); {
			if !continuesAddress(rest[end:]) && !yield(rest[:end]) {
				return false
			}
			_, n := utf8.DecodeRuneInString(rest[end:])
			end += max(n, 1)
		}
	}
	return true
}

// isNoIDRune reports whether account IDs cannot contain a character.
func isNoIDRune(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
