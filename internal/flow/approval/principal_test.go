package approval

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	const ann = "ann@example.com"
	for text, want := range map[string]bool{
		ann: true, "ANN@EXAMPLE.COM": true, "  ann@example.com\u00a0": true, "Ann@Example.com\u3000": true,
		"mailto:ann@example.com": true, "MAILTO:Ann@example.com": true, "mailto:ann%40example.com": true, "mailto:ann@example.com?subject=x": true,
		"<ann@example.com>": true, "Ann Example <ann@example.com>": true, `"Ann" <"ann"@example.com>`: true, "ann@example.com (Ann)": true,
		"ann @ example . com": true, "support for ann@example.com": true, "acct:ann@example.com": true, "ann@example.com.": true, "ann@example.com,bot": true,
		"ann\u200b@example.com": true, "\ufeffann@example.com": true, "\u202eann@example.com": true, "ａｎｎ@example.com": true, "ann＠example.com": true,
		"ann@example。com": true, "ann\u00ad@example.com": true, "joann@example.com; ann@example.com": true,
		"": false, "ann": false, "example.com": false, "bob@example.com": false, "joann@example.com": false, "x.ann@example.com": false,
		"ann@example.com.evil.org": false, "ann@example.community": false, "ann@example.com-x": false, "аnn@example.com": false, "%zz": false,
	} {
		checkMentions(t, text, ann, want)
	}
	for text, want := range map[string]bool{"acc_ann": true, " ACC_ANN": true, "user acc_ann": true, "acc_anna": false, "xacc_ann": false} {
		checkMentions(t, text, "acc_ann", want)
	}
	if mentions("", "") || mentions("anybody", "") {
		t.Error("nobody is named by no name")
	}
	if !mentions("stra\u00dfe@example.com", "STRASSE@example.com") || !mentions("e\u0301va@example.com", "\u00e9va@example.com") {
		t.Error("a folded or decomposed address is not found")
	}
}

// checkMentions checks a principal and its hidden form, before and after it is stored.
func checkMentions(t *testing.T, text, name string, want bool) {
	t.Helper()
	if got := mentions(text, name); got != want {
		t.Errorf("%q: got %v, want %v", text, got, want)
	}
	stored, err := json.Marshal(Hide(text))
	if err != nil {
		t.Fatal(err)
	}
	var hidden Hidden
	if err := json.Unmarshal(stored, &hidden); err != nil {
		t.Fatal(err)
	}
	if got := hidden.Mentions(name); got != want {
		t.Errorf("%q, hidden: got %v, want %v", text, got, want)
	}
	if strings.Contains(string(stored), name) {
		t.Errorf("%q: %s contains the name", text, stored)
	}
}

// A hidden principal mentions every account that the principal mentions.
func TestHiddenMentionsTheSame(t *testing.T) {
	parts := []string{"ann@example.com", "acc_ann", "bob@example.com", "joann@example.com", "Ann", " ", " ", ",", "<", ">", ".", "@", "\u00e9", "%40", "\"",
		"\u200b", "x", "-", "+", "ANN@EXAMPLE.COM", "\ufdfa", "\u00a8", "(", "mailto:"}
	random := rand.New(rand.NewPCG(1, 2))
	mentioned := 0
	for range 10_000 {
		var text strings.Builder
		for range random.IntN(9) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		hidden := Hide(text.String())
		for _, name := range []string{"ann@example.com", "bob@example.com", "acc_ann", "eve@example.com"} {
			want := mentions(text.String(), name)
			if got := hidden.Mentions(name); got != want {
				t.Fatalf("%q, %s: got %v, want %v", text.String(), name, got, want)
			}
			if want {
				mentioned++
			}
		}
	}
	if mentioned < 1500 {
		t.Errorf("%d principals mention a name", mentioned)
	}
}

func TestHiddenIsSalted(t *testing.T) {
	one, other := Hide("ann@example.com"), Hide("ann@example.com")
	if string(one.Sums) == string(other.Sums) {
		t.Error("two hidden principals have the same hashes")
	}
	if none := Hide(", <>"); fmt.Sprint(none) != fmt.Sprint(Hidden{}) || none.Mentions("ann@example.com") || none.Mentions("") {
		t.Errorf("a principal without a name: got %v", none)
	}
}

// Work and size are bounded for any text that an agent sends: a principal beyond the bound mentions every account.
func TestHiddenIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("!", 128) + "@" + strings.Repeat("!", 127), strings.Repeat("a@ ", 85), strings.Repeat("\ufdfa@", 128)} {
		hidden := Hide(text)
		if len(hidden.Sums) > maxNames*sumLen {
			t.Errorf("got %d bytes", len(hidden.Sums))
		}
		if hidden.All && (!hidden.Mentions("ann@example.com") || hidden.Mentions("")) {
			t.Error("a principal with too many names mentions nobody")
		}
	}
	if !Hide(strings.Repeat("!", 128) + "@" + strings.Repeat("!", 127)).All {
		t.Error("a principal with 16,384 names has all of them")
	}
}
